#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: `wreath perf` prints the table that nccl-tests' users and their parsers
# know, writes JSON and CSV that agree with it, and checks what it measures.
# Method: short runs; rows are compared with the format column by column.
# shellcheck source=test/cli/expect.sh
. "$(dirname "$0")/expect.sh"

# perf STATUS OPTIONS...: a few milliseconds for each half of a row.
perf() {
	local want=$1
	shift
	expect "$want" "$wreath" perf all_reduce --seconds 0.005 -q "$@"
}

half='  [ .0-9]{7}  [ .0-9]{6}  [ .0-9]{6}  [ 0-9]{6}'
none='      N/A     N/A     N/A     N/A'

the_table_is_nccl_tests() {
	perf 0 -g 2 -b 8 -e 4096 -f 8
	shows out '^# wreath version [0-9.]+$'
	shows out '^# Collective test starting: all_reduce_perf$'
	shows out "^# nThread 1 nGpus 2 minBytes 8 maxBytes 4096 step: 8\\(fa"
	shows out '^# Using devices$'
	for rank in 0 1; do
		shows out "^#  Rank  $rank Group  0 Pid +[0-9]+ on .* device  \
0 \\[[a-z0-9_]+:[0-9]+\\] "
	done
	grep -A 2 '^#                    ' "$dir/out" >"$dir/columns"
	local heads='  time   algbw   busbw  #wrong'
	local units='  (us)  (GB/s)  (GB/s)'
	{
		printf '#%74s%31s\n' out-of-place in-place
		printf '#%11s%14s%10s%8s%8s   %s   %s\n' \
			size count type redop root "$heads" "$heads"
		printf '#%11s%14s%26s   %s%8s   %s\n' \
			'(B)' '(elements)' '' "$units" '' "$units"
	} >"$dir/want"
	cmp -s "$dir/columns" "$dir/want" ||
		complain "the columns' heads: $(cat "$dir/columns")"
	[ "$(grep -vc '^#' "$dir/out")" = 4 ] || complain "not four rows"
	for bytes in 8 64 512 4096; do
		row=$(printf '%12d  %12d     float     sum      -1' \
			$bytes $((bytes / 4)))
		shows out "^$row($half){2}\$"
	done
	shows out '^# Out of bounds values : 0 OK$'
	shows out '^# Avg bus bandwidth    : [0-9.e+-]+ $'
	shows out '^# Collective test concluded: all_reduce_perf$'
	[ ! -s "$dir/err" ] || complain "on stderr: $(cat "$dir/err")"
}

sizes_are_as_asked() {
	rows() {
		grep -v '^#' "$dir/out" | awk '{ printf "%s ", $1 }'
	}
	perf 0 -g 2 -b 8 -e 40 -i 16
	[ "$(rows)" = '8 24 40 ' ] || complain "by adding: $(rows)"
	perf 0 -g 2 -b 1K -e 4K -f2
	[ "$(rows)" = '1024 2048 4096 ' ] || complain "by 2: $(rows)"
	perf 0 -g 2 --sizes=100,8,0
	[ "$(rows)" = '100 8 0 ' ] || complain "by a list: $(rows)"
	# What is no whole element is cut off, and no element is no row.
	perf 0 -g 2 -d double --sizes 7,20
	[ "$(rows)" = '16 ' ] || complain "odd sizes: $(rows)"
}

every_type_and_operation_is_right() {
	local n
	for n in 1 3; do
		perf 0 -g $n -b 1237 -e 1237 -d all -o all --csv - -n 3
		[ "$(wc -l <"$dir/out")" = 141 ] ||
			complain "not 14 types, 5 operations, 2 halves"
		awk -F, 'NR > 1 && $18 != 0 { exit 1 }' "$dir/out" ||
			complain "wrong results: $(cat "$dir/err")"
	done
	perf 0 -g 2 -b 64 -e 64 -d half,bfloat16 -o min,max
	shows out ' +half +max '
	shows out ' bfloat16 +min '
}

json_and_csv_agree() {
	perf 0 -g 2 -b 8 -e 1M -f 128 --json "$dir/json" --csv "$dir/csv"
	shows out '^# Collective test concluded'
	json "$dir/json" 'x["collective"] == "all_reduce" and x["ranks"] == 2'
	json "$dir/json" '"%s" % x["version"] and x["error"] is None'
	json "$dir/json" 'len(x["results"]) == 6'
	json "$dir/json" 'all(set(r) >= {"algo", "bytes", "count", "type",
		"op", "in_place", "time_us", "algbw_gbs", "busbw_gbs", "wrong"}
		for r in x["results"])'
	json "$dir/json" 'all(r["count"] * 4 == r["bytes"] and r["wrong"] == 0
		and r["type"] == "float" and r["op"] == "sum"
		for r in x["results"])'
	json "$dir/json" 'all(t["min"] <= t["p50"] <= t["p99"] <= t["max"] and
		t["min"] <= t["avg"] <= t["max"] and t["min"] >= 0
		for t in (r["time_us"] for r in x["results"]))'
	json "$dir/json" 'all(abs(r["bytes"] / r["time_us"]["avg"] / 1000 -
		r["algbw_gbs"]) < 0.01 * r["algbw_gbs"]
		for r in x["results"])'
	json "$dir/json" '{r["algo"] for r in x["results"]} <=
		{"ring", "oneshot", "twoshot"}'
	[ "$(wc -l <"$dir/csv")" = 7 ] || complain "not seven lines of CSV"
	perf 0 -g 2 -b 8 -e 8 --json -
	json "$dir/out" 'len(x["results"]) == 2'
	perf 0 -g 2 -b 8 -e 8 -J - -c 0
	json "$dir/out" 'x["results"][0]["wrong"] is None'
}

options_do_what_they_say() {
	perf 0 -g 2 -b 64 -e 64 -c 0
	shows out '  N/A .*  N/A$'
	perf 0 -g 2 -b 64 -e 64 --place in
	shows out "^ +64 .*-1$none($half)\$"
	perf 0 -g 2 -b 64 -e 64 --place out
	shows out "^ +64 .*-1($half)$none\$"
	perf 0 -g 2 -b 64 -e 64 -I 1
	shows out 'i_min +i_max +i_p99 +i_cv%'
	perf 0 -g 2 -b 64 -e 64 --touch
	perf 0 -g 2 -b 64 -e 64 --stream -n 300
	perf 0 -g 2 -b 64 -e 64 -m 10 -n 2 -w 0 -u 3 -N 2 -r 0 -p 1 -a 3
	[ "$(grep -vc '^#' "$dir/out")" = 2 ] || complain "not two cycles"
	for kind in alloc malloc register; do
		perf 0 -g 2 -b 64K -e 64K --buffers $kind
	done
	perf 0 -g 2 -b 64 -e 64 --algo ring,oneshot
	shows out '^# Algorithm: ring$'
	shows out '^# Algorithm: oneshot$'
	perf 7 -g 2 -b 64 -e 64 --min-busbw 100000
	shows out '^# Avg bus bandwidth    : .* FAILED$'
	perf 0 -g 2 -b 64 -e 64 --min-busbw 0.0000001
	# Ranks as threads.
	perf 0 -t 3 -b 8 -e 64K -f 8192
	shows out '^#  Rank  2 '
	perf 0 -g 2 -t 2 -b 8 -e 8
	shows out '^#  Rank  3 '
}

other_ways_to_start_it() {
	local path
	path=$(readlink -f "$wreath") && ln -s "$path" "$dir/all_reduce_perf"
	expect 0 "$dir/all_reduce_perf" -g 2 -b 8 -e 8 -n 5
	shows out '^# Collective test starting: all_reduce_perf$'
	expect 0 "$wreath" run -n 3 "$wreath" perf all_reduce -b 8 -e 8 -n 5
	shows out '^\[0\] #  Rank  2 '
	hides out '^\[[12]\]'
	expect 0 "$wreath" run -n 2 --no-prefix "$wreath" perf all_reduce \
		-b 8 -e 8 -n 5 --json -
	json "$dir/out" 'x["ranks"] == 2 and len(x["results"]) == 2'
	expect 6 "$wreath" run -n 1 "$wreath" perf all_reduce -g 2
	shows err 'a launcher has started the ranks already'
}

plots_are_drawn() {
	if command -v gnuplot >/dev/null; then
		perf 0 -g 2 -b 8 -e 4096 --plot "$dir/x.svg"
		grep -q '</svg>' "$dir/x.svg" || complain "no plot: $ran"
		perf 0 -g 2 -b 8 -e 4096 --plot -
		shows out 'all-reduce: bus bandwidth'
	fi
	mkdir "$dir/bin"
	PATH=$dir/bin /usr/bin/timeout 20 "$wreath" perf all_reduce -g 2 -b 8 \
		-e 64 -n 5 --plot "$dir/y.svg" >"$dir/out" 2>"$dir/err"
	ran="perf --plot without gnuplot"
	shows err 'gnuplot is not installed; .*y.svg.gp'
	grep -q '^plot' "$dir/y.svg.gp" || complain "no script: $ran"
}

the_table_is_nccl_tests
sizes_are_as_asked
every_type_and_operation_is_right
json_and_csv_agree
options_do_what_they_say
other_ways_to_start_it
plots_are_drawn
exit "$failed"
