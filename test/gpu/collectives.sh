#!/bin/bash
# SPDX-License-Identifier: MIT
#
# collectives.sh BUILD: every collective of `wreath perf` on memory of a GPU,
# by 1, 2 and 4 ranks, with each element checked; in order of a CUDA stream and
# blocking, and among ranks of which half are on the host.
set -u
B=${1:?a build folder}
failed=0

# perf COLLECTIVE RANKS OPTIONS...
perf() {
	local collective=$1 n=$2
	shift 2
	timeout 20 "$B/wreath" perf "$collective" -g "$n" -b 8 -e 1M -f 181 \
		-n 3 -w 1 -q "$@" >"$TMPDIR/out" 2>&1 &&
		grep -q '^# Out of bounds values : 0 OK$' "$TMPDIR/out" &&
		return
	failed=1
	echo "wreath perf $collective -g $n $*:"
	tail -n 5 "$TMPDIR/out"
}

TMPDIR=$(mktemp -d) || exit 1
trap 'rm -rf "$TMPDIR"' EXIT
for collective in all_reduce reduce broadcast reduce_scatter all_gather \
	gather scatter all_to_all sendrecv all_gather_v reduce_scatter_v \
	all_to_all_v; do
	for n in 1 2 4; do
		perf "$collective" "$n" --memory gpu
	done
	perf "$collective" 2 --memory gpu -z 1
	perf "$collective" 3 --memory mixed
done
perf all_reduce 2 --memory managed
perf all_reduce 4 --memory gpu -d half,bfloat16,f8e4m3 -o sum,avg,max
exit $failed
