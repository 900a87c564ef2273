#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: --nodes makes nodes of ranks as it was asked to, and refuses what does
# not come out even with the numbers; `wreath info` shows the rails.
# Method: ranks that print what they were given; uneven shapes; nonsense.
# shellcheck source=test/cli/expect.sh
. "$(dirname "$0")/expect.sh"

# shape NODES N WANT: the nodes of ranks 0 to N-1, joined.
shape() {
	local got
	# shellcheck disable=SC2016
	got=$("$wreath" run -n "$2" --nodes "$1" --no-prefix \
		sh -c 'echo $WREATH_RANK $WREATH_NODE' | sort -n |
		cut -d' ' -f2 | tr -d '\n')
	[ "$got" = "$3" ] || complain "--nodes $1 of $2 ranks: $got, not $3"
}

refused() {
	expect 6 "$wreath" "$@"
	hides out .
}

ranks_get_their_node() {
	shape 2 8 00001111
	shape 3 8 00011122
	shape 8 8 01234567
	shape 1 3 000
	shape 3,5 8 00011111
	shape 1,1,2 4 0122
	# One that was there is replaced, and left where there is no option.
	export WREATH_NODE=9
	shape 2 2 01
	# shellcheck disable=SC2016
	expect 0 "$wreath" run -n 2 sh -c 'echo $WREATH_NODE'
	shows out '^\[1\] 9$'
	unset WREATH_NODE
}

what_does_not_fit_is_refused() {
	refused run -n 8 --nodes 3,4 true
	shows err 'places for 7 ranks on 2 nodes, and there are 8 ranks'
	refused run -n 8 --nodes 3,6 true
	shows err 'places for 9 ranks on 2 nodes'
	refused run -n 2 --nodes 3 true
	shows err '3 nodes are more than the 2 ranks'
	for bad in 0 -1 x 3x 3,,5 ,8 '8,' 4,0,4 99999999999999999999 1,x; do
		refused run -n 8 --nodes "$bad" true
		shows err '^wreath run: --nodes: '
	done
	refused perf all_reduce -g 2 -t 4 --nodes 3
	shows err 'threads of one process, on two nodes'
	WREATH_RANK=0 refused perf all_reduce --nodes 1
	shows err 'wreath run --nodes'
}

results_are_right_on_nodes() {
	for nodes in 2 1,3 1,1,2; do
		WREATH_SOFT=ib:1,roce:1 expect 0 "$wreath" perf all_reduce \
			-g 4 --nodes $nodes -b 8 -e 256K -n 3 --algo all
		shows out '^# Out of bounds values : 0 OK'
	done
	expect 0 "$wreath" perf all_reduce -g 2 -t 2 --nodes 2 -b 8 -e 4K -n 3
	shows out '^# Out of bounds values : 0 OK'
}

info_shows_rails() {
	export WREATH_SOFT=ib:1,roce:2
	expect 0 "$wreath" info
	shows out '^  within this host: soft0:1 \(InfiniBand.*, soft1:1 \(Ether'
	hides out '^  within this host: .*soft2'
	expect 0 "$wreath" info --json
	json "$dir/out" '[r["port"] for r in
		x["rails"]["within_host"]["rails"]] == ["soft0:1", "soft1:1"]'
	WREATH_CHANNELS=1 expect 0 "$wreath" info
	hides out '^  within this host: .*soft1'
	WREATH_HCA=nothing expect 0 "$wreath" info
	shows out '^  within this host: none: WREATH_HCA=nothing'
	unset WREATH_SOFT
}

ranks_get_their_node
what_does_not_fit_is_refused
results_are_right_on_nodes
info_shows_rails
exit "$failed"
