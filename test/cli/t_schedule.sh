#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: `wreath schedule` prints and proves every algorithm.
# Method: each of them, for several numbers of ranks and channels.
# shellcheck source=test/cli/expect.sh
. "$(dirname "$0")/expect.sh"

expect 0 "$wreath" schedule all_reduce --algo ring -n 4
shows out '^collective  all_reduce$'
shows out '^algorithm   ring$'
for rank in 0 1 2 3; do
	shows out "^rank        $rank of 4\$"
done
shows out '^lane 0 step 0: '
expect 0 "$wreath" schedule all_reduce --algo ring -n 4 --rank 2
shows out '^rank        2 of 4$'
hides out '^rank        [013] of'

for algo in ring oneshot twoshot; do
	for n in 1 2 3 5 8 16; do
		for channels in 1 2 4; do
			expect 0 "$wreath" schedule all_reduce --algo $algo \
				-n $n --channels $channels --verify
			shows out '^proved, in every order'
		done
		expect 0 "$wreath" schedule all_reduce --algo $algo -n $n \
			--verify --in-place
	done
done
for form in {reduce_scatter,all_gather,broadcast,reduce}:{ring,direct} \
	{gather,scatter,all_to_all,exchange}:direct; do
	for n in 1 2 5 8; do
		expect 0 "$wreath" schedule "${form%:*}" --algo "${form#*:}" \
			-n $n --channels 2 --verify
		shows out '^proved, in every order'
	done
done
expect 0 "$wreath" schedule all_reduce --algo ring -n 4 --verify
shows out '^all_reduce ring, 4 ranks, 1 channel$'
shows out '^  sent by the busiest rank +6 chunks, bound 6$'

expect 6 "$wreath" schedule all_reduce --algo rnig
shows err "algo 'rnig' is not one of: .*did you mean ring"
expect 6 "$wreath" schedule all_reduce -n 0
expect 6 "$wreath" schedule all_reduce -n 4 --rank 4
shows err 'rank 4 is not one of 4 ranks'
expect 6 "$wreath" schedule all_reduce --channels 5
expect 6 "$wreath" schedule
expect 6 "$wreath" schedule brodcast
exit "$failed"
