#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: whatever perftest's bandwidth programs can vary, the soft device bears.
# Method: all sizes, both directions, many queue pairs, lists of requests,
# events, inline data, small packets, the old and the extended interfaces; UC
# and UD, shared receive queues, atomics; the personalities take turns.
# shellcheck source=test/cli/dropin.sh
. "$(dirname "$0")/dropin.sh" ib_write_bw ib_read_bw ib_send_bw \
	ib_atomic_bw

kind=ib
# sweep TOOL OPTIONS...
sweep() {
	local tool=$1
	shift
	[ $kind = ib ] && kind=roce || kind=ib
	pair $kind "$tool" -F -d soft0 "$@"
}

for tool in ib_write_bw ib_read_bw ib_send_bw; do
	sweep $tool -a -n 10
	sweep $tool -n 200 -b
	sweep $tool -n 200 -q 8
	sweep $tool -n 160 -l 16 -t 64
done
sweep ib_write_bw -n 200 -Q 10 -s 64
sweep ib_send_bw -n 200 -Q 10 -s 64
sweep ib_read_bw -n 200 -m 1024 -s 5000
sweep ib_send_bw -n 200 -m 1024 -s 5000
sweep ib_write_bw -n 200 --use_old_post_send
sweep ib_send_bw -n 200 --use_old_post_send
sweep ib_write_bw -n 200 --mr_per_qp -q 2
sweep ib_write_bw -n 20 -s 8388608
sweep ib_read_bw -n 200 -e
sweep ib_send_bw -n 200 -e
sweep ib_write_bw -n 200 -I 64 -s 64
sweep ib_send_bw -n 200 -I 64 -s 64
sweep ib_write_bw -D 1 -s 4096
sweep ib_write_bw -c UC -n 200
sweep ib_send_bw -c UC -n 200
for options in "-q 4" "-b" "-m 1024 -s 1000" "--use_old_post_send"; do
	# shellcheck disable=SC2086
	sweep ib_send_bw -c UD -n 200 -s 2048 $options
done
sweep ib_send_bw -n 200 --use-srq -q 4
sweep ib_atomic_bw -n 200
sweep ib_atomic_bw -n 200 -A CMP_AND_SWAP -q 2
exit $failed
