#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: whatever perftest's bandwidth programs can vary, the soft device bears.
# Method: all sizes, both directions, many queue pairs, lists of requests,
# events, inline data, small packets, the old and the extended interfaces; the
# personalities take turns.
# shellcheck source=test/cli/dropin.sh
. "$(dirname "$0")/dropin.sh" ib_write_bw ib_read_bw ib_send_bw

kind=ib
# sweep TOOL OPTIONS...
sweep() {
	local tool=$1
	shift
	[ $kind = ib ] && kind=roce || kind=ib
	pair $kind "$tool" -F -d soft0 "$@"
}

for tool in ib_write_bw ib_read_bw ib_send_bw; do
	sweep $tool -a -n 20
	sweep $tool -n 200 -b
	sweep $tool -n 200 -q 8
	sweep $tool -n 160 -l 16 -t 64
	sweep $tool -n 200 -Q 10 -s 64
	sweep $tool -n 200 -m 1024 -s 5000
	sweep $tool -n 200 --use_old_post_send
	sweep $tool -n 200 --mr_per_qp -q 2
done
sweep ib_write_bw -n 20 -s 8388608
sweep ib_read_bw -n 200 -e
sweep ib_send_bw -n 200 -e
sweep ib_write_bw -n 200 -I 64 -s 64
sweep ib_send_bw -n 200 -I 64 -s 64
sweep ib_write_bw -D 1 -s 4096
exit $failed
