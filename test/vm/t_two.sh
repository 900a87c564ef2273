#!/bin/bash
# SPDX-License-Identifier: MIT
#
# t_two.sh BUILD FIRST N ALL CASE...: inside one of two.sh's machines, ranks
# FIRST to FIRST+N-1 of ALL, which work off the cases.  Nothing but rank, size
# and where to meet is set.
set -u
build=$1 first=$2 n=$3 all=$4
shift 4
host=$(hostname)
ulimit -l unlimited
/run/busybox modprobe sch_netem
export WORLD_SIZE=$all MASTER_ADDR=10.77.0.1 MASTER_PORT=29500
pids=
for ((i = 0; i < n; i++)); do
	RANK=$((first + i)) "$build/test/vm/two" "$host" "$i" "$@" &
	pids="$pids $!"
done
status=0
for pid in $pids; do
	wait "$pid" || {
		status=$?
		echo "a rank of $host ended with status $status"
	}
done
cd /sys/class/infiniband/rxe0/ports/1/hw_counters &&
	echo "counters of $host: $(grep -v '^0$' -- * | tr '\n' ' ')"
exit $status
