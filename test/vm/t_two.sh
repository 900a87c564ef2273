#!/bin/bash
# SPDX-License-Identifier: MIT
#
# t_two.sh BUILD FIRST N ALL CASE...: inside one of two.sh's machines, ranks
# FIRST to FIRST+N-1 of ALL, which work off the cases.  Nothing but rank, size
# and where to meet is set.  The case `perf` is the command's own check.
set -u
build=$1 first=$2 n=$3 all=$4
shift 4
host=$(hostname)
ulimit -l unlimited
/run/busybox modprobe sch_netem
export WORLD_SIZE=$all MASTER_ADDR=10.77.0.1

# perf RANK: what it finds wrong is its exit status.
perf() {
	local start=$SECONDS verdict=PASS text
	text=$(RANK=$1 MASTER_PORT=29400 "$build/wreath" perf all_reduce \
		-b 8 -e 256K -f 32 -n 5 -w 1 2>&1) || verdict="FAIL"
	[ $verdict = PASS ] || text=$(tail -n 3 <<<"$text" | tr '\n' ' ')
	[ $verdict = FAIL ] || text=
	echo "@ perf $1 $verdict $((SECONDS - start)) $text"
}

# work RANK NUMBER CASE...: the rank that is the NUMBERth of this machine.
work() {
	local rank=$1 number=$2
	shift 2
	case " $* " in
	*" perf "*) perf "$rank" ;;
	esac
	RANK=$rank MASTER_PORT=29500 exec "$build/test/vm/two" "$host" \
		"$number" "$@"
}

pids=
for ((i = 0; i < n; i++)); do
	work $((first + i)) "$i" "$@" &
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
