#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: `wreath perf overlap` times computation, communication and both, and
# the gradient that it reduces in buckets is right.
# Method: short runs on a port with a rate, so that there is time to hide; what
# follows from the three times is computed again.  Times themselves are not
# judged: the machine may have other things to do.
# shellcheck source=test/cli/expect.sh
. "$(dirname "$0")/expect.sh"

perf() {
	local want=$1
	shift
	expect "$want" "$wreath" perf overlap --seconds 0.01 -q "$@"
}

times_are_what_follows_from_them() {
	WREATH_SOFT=roce:1@4G perf 0 -g 2 --gradient 1M -b 64K --compute 4 \
		--json "$dir/json" --csv "$dir/csv"
	shows out '^# Collective test starting: overlap_perf$'
	shows out '^#     bucket   buckets .* hidden    ideal   faster  #wrong$'
	shows out '^ +65536 +16 +float +sum( +-?[0-9.]+){6} +0$'
	# What is in one piece can begin only when all is computed.
	shows out '^ +1048576 +1 +float .* 0\.0 +[0-9.]+ +0$'
	shows out '^# Out of bounds values : 0 OK$'
	shows out '^# Least time           : [0-9.]+ ms by buckets of [0-9]+ '
	json "$dir/json" '[(r["bytes"], r["buckets"]) for r in x["results"]] ==
		[(65536, 16), (262144, 4), (1048576, 1)]'
	json "$dir/json" 'all(r["wrong"] == 0 and r["gradient_bytes"] == 1 << 20
		for r in x["results"])'
	json "$dir/json" 'all(abs(1 - (r["both_us"] - r["compute_us"]) /
		r["comm_us"] - r["hidden"]) < 0.01 for r in x["results"])'
	json "$dir/json" 'all(r["hidden_ideal"] <= 1 - 1 / r["buckets"] + 0.001
		for r in x["results"])'
	json "$dir/json" 'all(r["compute_us"] > 100 for r in x["results"])'
	[ "$(wc -l <"$dir/csv")" = 4 ] || complain "not four lines of CSV"
	awk -F, 'NR > 1 && ($2 != "overlap" || $17 != 0) { exit 1 }' \
		"$dir/csv" || complain "CSV: $(cat "$dir/csv")"
}

gradients_need_not_divide() {
	perf 0 -g 3 --gradient 100003 --sizes 4K,99999,7 -d half -o avg -n 2 \
		--json -
	json "$dir/out" '[r["buckets"] for r in x["results"]] ==
		[25, 2, 16667]'
	json "$dir/out" 'all(r["wrong"] == 0 for r in x["results"])'
	perf 0 -t 2 --gradient 64K -n 2
	expect 0 "$wreath" run -n 2 --no-prefix "$wreath" perf overlap \
		--gradient 64K -n 2
	shows out '^ +65536 +1 '
}

nonsense_is_refused() {
	perf 6 --gradient 1M -e 2M
	shows err 'more than --gradient'
	perf 6 --gradient 1M --sizes 1K,2M
	perf 6 --gradient 1M -b 0 -i 8
	perf 6 --plot "$dir/x.svg"
	shows err 'overlap is not drawn'
	perf 6 --compute -1
}

times_are_what_follows_from_them
gradients_need_not_divide
nonsense_is_refused
exit "$failed"
