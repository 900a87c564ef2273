#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: `wreath schedule` prints and proves every collective by every algorithm
# that has such a form, and says what is wrong with a line that makes no sense.
# Method: all pairs of the two; the options one by one; each with bad values.
# shellcheck source=test/cli/expect.sh
. "$(dirname "$0")/expect.sh"

moving='broadcast all_gather gather scatter all_to_all exchange'
collectives="all_reduce reduce reduce_scatter barrier $moving"

expect 0 "$wreath" schedule all_reduce --algo ring -n 4
shows out '^collective  all_reduce$'
shows out '^algorithm   ring$'
for rank in 0 1 2 3; do
	shows out "^rank        $rank of 4\$"
done
shows out '^lane 0      channel 0, box 0, steps 7$'
shows out '^lane 0 step 0: '
expect 0 "$wreath" schedule all_reduce --algo ring -n 4 --rank 2
shows out '^rank        2 of 4$'
hides out '^rank        [013] of'

# Each has the forms that it is listed with, and names them for another.
for collective in $collectives; do
	forms=
	for algo in ring oneshot twoshot tree split-ring halving direct; do
		run "$wreath" schedule "$collective" --algo $algo -n 5 \
			--channels 2 --verify
		if [ "$status" = 0 ]; then
			shows out "^$collective $algo, 5 ranks"
			shows out '^proved, in every order'
			forms="$forms $algo"
			continue
		fi
		[ "$status" = 6 ] || complain "status $status: $ran"
		shows err "$algo has no form for $collective; there is "
	done
	[ "$forms" ] || complain "no algorithm has a form for $collective"
	expect 6 "$wreath" schedule "$collective" -n 0
	# Unnamed, it is the first of them.
	expect 0 "$wreath" schedule "$collective" --rank 3
	first=${forms# }
	shows out "^algorithm   ${first%% *}\$"
done

for algo in ring oneshot twoshot tree split-ring halving; do
	for n in 1 2 3 5 8 16; do
		for channels in 1 4; do
			expect 0 "$wreath" schedule all_reduce --algo $algo \
				-n $n --channels $channels --verify
		done
		expect 0 "$wreath" schedule all_reduce --algo $algo -n $n \
			--verify --in-place
	done
done
for root in 0 3 6; do
	for collective in broadcast reduce gather scatter; do
		expect 0 "$wreath" schedule "$collective" -n 7 --root $root \
			--verify --in-place
		shows out "^$collective [a-z]+, 7 ranks, root $root, 1 channel"
	done
done
expect 0 "$wreath" schedule all_reduce --algo ring -n 4 --verify
shows out '^all_reduce ring, 4 ranks, 1 channel$'
shows out '^  sent by the busiest rank +6 chunks, bound 6$'
shows out '^  taken by the busiest rank +6 chunks$'
hides out '^collective'

# After the proof a rank's part, if one is asked for.
expect 0 "$wreath" schedule broadcast --algo tree -n 8 --nodes 3,5 --root 7 \
	--verify --rank 4 --slots 1
shows out '^broadcast tree, 8 ranks in 2 nodes, root 7, 1 channel$'
shows out '^proved, in every order, with 1 slots$'
shows out '^rank        4 of 8$'
shows out '^node        1 of 2$'
expect 0 "$wreath" schedule broadcast -n 8 --nodes 2 --rank 4
shows out '^node        1 of 2$'
expect 0 "$wreath" schedule broadcast -n 8 --nodes 1 --rank 4
hides out '^node'

# Blocks, and what is in them.
expect 0 "$wreath" schedule all_to_all -n 3 --channels 2 --rank 0
shows out '^chunks      6 a pass: 3 blocks of 2 pieces$'
shows out ': input -> send input final 1 in lane 1, await +chunk 2 \(block 1'

# The largest there is, as far as one rank goes; a proof of it is refused.
expect 0 "$wreath" schedule all_reduce --algo tree -n 16384 --nodes 2048 \
	--channels 4 --rank 16383
expect 1 "$wreath" schedule all_to_all -n 16384 --verify
shows err 'have more than 16777216 steps together, too many to prove'

expect 6 "$wreath" schedule all_reduce --algo rnig
shows err "algo 'rnig' is not one of: .*did you mean ring"
expect 6 "$wreath" schedule all_reduce --algo twoshot -n 65
shows err 'twoshot all_reduce takes at most 64 ranks; there are 65'
hides err 'there is '
expect 6 "$wreath" schedule all_reduce -n 4 --rank 4
shows err '^wreath schedule: --rank 4 is not one of 4 ranks: 0 to 3$'
expect 6 "$wreath" schedule broadcast -n 4 --root 4
shows err '^wreath schedule: --root 4 is not one of 4 ranks: 0 to 3$'
expect 6 "$wreath" schedule broadcast --root -1
expect 6 "$wreath" schedule all_gather --root 0
shows err '^wreath schedule: --root: all_gather has no root$'
expect 6 "$wreath" schedule all_to_all --verify --in-place
shows err '^wreath schedule: --in-place: all_to_all has no such form$'
expect 6 "$wreath" schedule all_reduce -n 4 --nodes 5
shows err 'nodes: 5 nodes are more than the 4 ranks'
expect 6 "$wreath" schedule all_reduce -n 4 --nodes 3,2
shows err 'places for 5 ranks on 2 nodes, and there are 4 ranks'
for nodes in 0 -1 x 1,,3 4,0 '1,' ',' 99999999999999999999; do
	expect 6 "$wreath" schedule all_reduce -n 4 "--nodes=$nodes"
	shows err '^wreath schedule: --nodes'
done
expect 6 "$wreath" schedule all_reduce -n 16385
expect 6 "$wreath" schedule all_reduce --channels 5
expect 6 "$wreath" schedule all_reduce --slots 0 --verify
expect 6 "$wreath" schedule
shows err 'of which collective'
expect 6 "$wreath" schedule brodcast
shows err "collective 'brodcast' is not one of: .*did you mean broadcast"
exit "$failed"
