#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: as in t_dropin_bw_long, of perftest's latency programs.
# Method: few rounds, since both ends poll memory and processors may be few;
# not -a, with which perftest measures the clock anew at each size.
# shellcheck source=test/cli/dropin.sh
. "$(dirname "$0")/dropin.sh" ib_write_lat ib_read_lat ib_send_lat \
	ib_atomic_lat

for kind in roce ib; do
	for tool in ib_write_lat ib_read_lat ib_send_lat; do
		pair $kind $tool -F -d soft0 -s 1 -n 100
		pair $kind $tool -F -d soft0 -s 1000000 -n 20
		shows out '^ 1000000 +20 '
	done
	pair $kind ib_read_lat -F -d soft0 -n 100 -e
	pair $kind ib_send_lat -F -d soft0 -n 100 -e
	pair $kind ib_write_lat -F -d soft0 -n 100 -I 220 -s 220
	pair $kind ib_send_lat -F -d soft0 -n 100 -I 64 -s 64
	pair $kind ib_write_lat -F -d soft0 -n 100 --use_old_post_send
	pair $kind ib_write_lat -F -d soft0 -n 100 -c UC
	pair $kind ib_send_lat -F -d soft0 -n 100 -c UD -s 1000
	pair $kind ib_send_lat -F -d soft0 -n 100 --use-srq
	pair $kind ib_atomic_lat -F -d soft0 -n 100
done
exit $failed
