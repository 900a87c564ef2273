#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: as in t_dropin_bw_long, of perftest's latency programs.
# shellcheck source=test/cli/dropin.sh
. "$(dirname "$0")/dropin.sh" ib_write_lat ib_read_lat ib_send_lat

# One of them tries all sizes: with each perftest measures the clock anew,
# which takes it most of a second.
pair roce ib_write_lat -F -d soft0 -a -n 5
shows out '^ 8388608 +5 '
for kind in roce ib; do
	for tool in ib_write_lat ib_read_lat ib_send_lat; do
		pair $kind $tool -F -d soft0 -s 1 -n 200
		pair $kind $tool -F -d soft0 -s 1000000 -n 20
	done
	pair $kind ib_read_lat -F -d soft0 -n 100 -e
	pair $kind ib_send_lat -F -d soft0 -n 100 -e
	pair $kind ib_write_lat -F -d soft0 -n 100 -I 220 -s 220
	pair $kind ib_send_lat -F -d soft0 -n 100 -I 64 -s 64
	pair $kind ib_write_lat -F -d soft0 -n 100 --use_old_post_send
done
exit $failed
