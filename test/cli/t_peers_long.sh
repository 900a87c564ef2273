#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: the comparison with other libraries runs, and writes what it should.
# Method: one short round of two sizes, with the peers that are installed.
# shellcheck source=test/cli/expect.sh
. "$(dirname "$0")/expect.sh"

ln -s "$(readlink -f "$wreath")" "$dir/wreath"
RANKS=2 SIZES='8 65536' ROUNDS=1 DURATION=0.05 \
	run bench/peers/run.sh "$dir"
[ "$status" != 77 ] || { echo "no MPI and no Gloo to compare with"; exit 77; }
[ "$status" = 0 ] || complain "status $status: $(cat "$dir/err")"
shows out '^all_reduce +2 +8 .* [0-9.]+ \([0-9.]+\.\.[0-9.]+\)$'
json "$dir/bench-peers.json" '[r["bytes"] for r in x] == [8, 65536]'
json "$dir/bench-peers.json" 'all(r["collective"] == "all_reduce" and
	r["ranks"] == 2 and r["ratio_min"] <= r["ratio"] <= r["ratio_max"] and
	r["wreath_us"] > 0 and r["best_peer_us"] > 0 and r["best_peer"] and
	r["wreath_algo"] for r in x)'
exit "$failed"
