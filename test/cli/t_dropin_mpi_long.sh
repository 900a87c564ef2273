#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: Open MPI over UCX computes right sums with nothing but the soft device
# between its ranks.
# Method: the program of bench/peers, which checks its results; shared memory
# and TCP are not among UCX's transports.
# shellcheck source=test/cli/dropin.sh
. "$(dirname "$0")/dropin.sh" mpirun.openmpi mpicc.openmpi ucx_perftest
mpicc.openmpi -O1 bench/peers/mpi.c -o "$dir/mpi" -lm 2>"$dir/log" || {
	cat "$dir/log"
	exit 1
}

for kind in roce ib; do
	for n in 2 4; do
		run timeout -k 5 50 mpirun.openmpi --allow-run-as-root \
			--oversubscribe --mca pml ucx --mca osc ucx \
			--mca btl '^openib' \
			-x LD_PRELOAD="$build/soft/ucx.so" \
			-x LD_LIBRARY_PATH="$build/soft" \
			-x WREATH_SOFT=$kind:1 -x UCX_NET_DEVICES=soft0:1 \
			-x UCX_TLS=rc_verbs,ud_verbs,self \
			-n $n "$dir/mpi" all_reduce 0.01 1 8 4096 65536 1048576
		[ "$status" = 0 ] || complain "$kind, $n ranks: status $status:
$(tail -n 5 "$dir/out" "$dir/err")"
		shows out '^1048576 [0-9.]+'
	done
done
exit $failed
