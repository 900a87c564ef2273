#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: `wreath perf` measures every collective under nccl-tests' names, with
# its sizes, counts and factors, and each is right, from and to every root.
# Method: short runs, whose tables and CSV are compared with the definitions.
# shellcheck source=test/cli/expect.sh
. "$(dirname "$0")/expect.sh"

# perf STATUS COLLECTIVE OPTIONS...
perf() {
	local want=$1
	shift
	expect "$want" "$wreath" perf "$@" --seconds 0.002 -q
}

# Collectives, what they are called by nccl-tests, blocks in a size, in place.
table='all_reduce all_reduce 1 yes
reduce reduce 1 yes
broadcast broadcast 1 yes
reduce_scatter reduce_scatter n yes
all_gather all_gather n yes
gather gather n yes
scatter scatter n yes
all_to_all alltoall n no
sendrecv sendrecv 1 no
reduce_scatter_v reduce_scatter_v n yes
all_gather_v all_gather_v n yes
all_to_all_v alltoallv n no'

half='  [ .0-9]{7}  [ .0-9]{6}  [ .0-9]{6}  [ 0-9]{6}'
none='      N/A     N/A     N/A     N/A'

tables_have_nccl_tests_columns() {
	local name other blocks place op root bytes row second
	while read -r name other blocks place; do
		op=none root=-1 second=$none
		case $name in *reduce*) op=sum ;; esac
		case $name in
		reduce | broadcast | gather | scatter) root=1 ;;
		esac
		[ "$place" = no ] || second=$half
		perf 0 "$name" -g 2 -b 64 -e 4096 -f 64 -r 1
		shows out "^# Collective test starting: ${other}_perf\$"
		shows out "^# Collective test concluded: ${other}_perf\$"
		for bytes in 64 4096; do
			row=$(printf '%12d  %12d     float  %6s  %6d' $bytes \
				$((bytes / 4 / (${blocks/n/2}))) $op $root)
			shows out "^$row$half($second)\$"
		done
		shows out '^# Out of bounds values : 0 OK$'
		[ "$(grep -vc '^#' "$dir/out")" = 2 ] ||
			complain "not two rows: $ran"
		# Sizes that the ranks cannot share are rounded down.
		perf 0 "$name" -g 3 -b 100 -e 100
		bytes=$((100 - 100 % (4 * ${blocks/n/3})))
		shows out "^ +$bytes +"
	done <<<"$table"
	perf 0 barrier -g 2
	shows out "^ +0 +0 +none +none +-1$half$none\$"
	perf 0 all_gather -g 2 -b 4 -e 4
	shows out '^# No size holds an element for every rank$'
	hides out 'OK$'
}

# The size's and the bus' bandwidth, of which the ratio is the factor.
factors_are_nccl_tests() {
	local name blocks factor
	while read -r name _ blocks _; do
		case $name in
		all_reduce) factor=1.5 ;;
		reduce | broadcast | sendrecv) factor=1 ;;
		*) factor=0.75 ;;
		esac
		perf 0 "$name" -g 4 -b 64K -e 64K --csv -
		awk -F, -v f=$factor 'NR > 1 {
			n++
			bw = $5 / $11 / 1000
			if ($16 < bw * 0.99 || $16 > bw * 1.01 ||
			    $17 < $16 * f * 0.99 || $17 > $16 * f * 1.01)
				bad = 1
		} END { exit bad || !n }' "$dir/out" ||
			complain "bandwidths of $name: $(cat "$dir/out")"
	done <<<"$table"
}

every_collective_is_right_in_every_type() {
	local name
	while read -r name _; do
		perf 0 "$name" -g 3 -b 3708 -e 3708 -d all -o all -r all -n 2 \
			-w 1 --csv -
		awk -F, 'NR > 1 && $18 != 0 { bad = 1 }
			END { exit bad || NR < 15 }' "$dir/out" ||
			complain "wrong: $ran: $(cat "$dir/err")"
		perf 0 "$name" -g 1 -b 3708 -e 3708 -n 2
	done <<<"$table"
	# Odd places, calls on a stream, ranks as threads, other memory.
	while read -r name _; do
		perf 0 "$name" -g 3 -b 12 -e 1M -f 32 -u 3 --stream --touch
		perf 0 "$name" -t 2 -b 64K -e 64K --buffers malloc -n 20
	done <<<"$table"
	perf 0 barrier -t 3 --stream
}

# Every rank is the root once, and every engine does it.
roots_and_engines_are_all_shown() {
	local name
	for name in reduce broadcast gather scatter; do
		perf 0 "$name" -g 3 -b 1K -e 1K -r all --json "$dir/json"
		json "$dir/json" '[r["root"] for r in x["results"]] ==
			[0, 0, 1, 1, 2, 2]'
		json "$dir/json" "x['collective'] == '$name'"
	done
	perf 0 reduce -g 2 -b 64 -e 64 --algo all --json "$dir/json"
	json "$dir/json" '{r["asked"] for r in x["results"]} >=
		{"ring", "tree", "direct", "auto"}'
	json "$dir/json" 'all(r["asked"] in (r["algo"], "auto")
		for r in x["results"])'
	shows out '^# Algorithms side by side: time in us'
	shows out "^# +64 +float +sum +0 +out( +[0-9.]+( \\([0-9.]+\\))?){4,} \
+[a-z-]+ +[a-z-]+ +[0-9.]+\$"
	shows out '^# Auto at its worst    : [0-9.]+ times the best, at 64 '
	json "$dir/json" 'all(set(r["predicted_us"]) >= {"ring", "direct"} and
		min(r["predicted_us"].values()) > 0 for r in x["results"]
		if r["asked"] == "auto")'
	perf 0 sendrecv -g 2 -b 64 -e 64 --algo all
	shows out '^# Algorithm: direct$'
	hides out '^# Algorithm: ring$'
	perf 6 gather -g 2 --algo ring
	shows err "gather has no such algorithm"
	shows err "'ring' is not one of: auto direct\$"
	# What a variable asks for is no error where there is no such thing.
	WREATH_ALGO=ring perf 0 gather -g 2 -b 64 -e 64
}

what_does_not_exist_is_refused() {
	perf 6 all_gathr -g 2
	shows err 'did you mean all_gather\?'
	perf 6 reduce gather
	shows err 'One at a time'
	perf 6 reduce -g 2 -r 2
	shows err 'root 2: there are 2 ranks'
	perf 6 reduce -r -1
	perf 6 reduce -r x
	shows err 'neither a rank'
	perf 6 sendrecv --place in
	shows err 'sendrecv has no form in place'
	expect 3 "$wreath" run -n 2 "$wreath" perf gather -r 5 -b 8 -e 8
	shows err 'root 5: there are 2 ranks'
	perf 1 barrier -g 2 --plot "$dir/x.svg"
	shows err 'nothing to draw'
}

names_of_programs_are_nccl_tests() {
	local path other
	path=$(readlink -f "$wreath")
	while read -r _ other _; do
		ln -s "$path" "$dir/${other}_perf"
		expect 0 "$dir/${other}_perf" -g 2 -b 64 -e 64 -n 2
		shows out "^# Collective test starting: ${other}_perf\$"
	done <<<"$table"
	for other in all_reduce reduce broadcast reduce_scatter all_gather \
		gather scatter alltoall sendrecv; do
		[ -x "$(dirname "$wreath")/${other}_perf" ] ||
			complain "there is no ${other}_perf beside wreath"
	done
	expect 0 "$wreath" run -n 3 --no-prefix "$wreath" perf alltoall \
		-b 12 -e 12 -n 2 --json -
	json "$dir/out" 'x["ranks"] == 3 and x["results"][0]["wrong"] == 0'
	expect 0 "$wreath" run -n 2 --no-prefix "$wreath" perf barrier -n 2
	shows out ' N/A +N/A +N/A +N/A +N/A$'
}

tables_have_nccl_tests_columns
factors_are_nccl_tests
every_collective_is_right_in_every_type
roots_and_engines_are_all_shown
what_does_not_exist_is_refused
names_of_programs_are_nccl_tests
exit "$failed"
