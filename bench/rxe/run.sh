#!/bin/bash
# SPDX-License-Identifier: MIT
#
# run.sh BUILD: all-reduce of 2 ranks over kernel soft-RoCE in a virtual
# machine: what the device can do (perftest), Open MPI over UCX, and wreath, in
# turn on the same device, as a table.  README.md beside this file explains it.
#
#   ROUNDS=3   HCA=mlx5_0: this host's own device instead, GID_INDEX=3
set -u
here=$(dirname "$0")
build=$1
rounds=${ROUNDS:-3}

for tool in ib_write_bw ib_write_lat mpirun.openmpi mpicc.openmpi; do
	command -v $tool >/dev/null || {
		echo "bench-rxe: $tool is missing"
		exit 77
	}
done
mkdir -p "$build/peers"
peer=$build/peers/openmpi
if ! [ "$peer" -nt "$here/../peers/mpi.c" ]; then
	mpicc.openmpi -O2 "$here/../peers/mpi.c" -o "$peer" || exit 1
fi
if [ -n "${HCA:-}" ]; then
	"$here/inside.sh" "$build" "$HCA" "${GID_INDEX:-0}" "$rounds"
else
	# The address is the second GID, behind the link-local one.
	"$here/../../test/vm/vm.sh" -t $((60 + 90 * rounds)) \
		"bench/rxe/inside.sh $build rxe0 1 $rounds"
fi >"$build/bench-rxe.raw"
status=$?
grep '^#' "$build/bench-rxe.raw"
if [ $status != 0 ]; then
	tail -n 5 "$build/bench-rxe.raw"
	exit $status
fi
awk -v json="$build/bench-rxe.json" -f "$here/table.awk" "$build/bench-rxe.raw"
