#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: perftest measures the soft device as it does others.
# Method: its four most used programs, unmodified, one size each; each takes a
# second to find out what the processor's clock is, so the personalities share
# them here, and t_dropin_bw_long and t_dropin_lat_long do the rest.
# shellcheck source=test/cli/dropin.sh
. "$(dirname "$0")/dropin.sh" ib_write_bw ib_write_lat ib_read_bw ib_send_bw

pair roce ib_write_bw -F -d soft0 -n 200
shows out '^ 65536 +200 +[0-9.]+ +[0-9.]+'
pair ib ib_read_bw -F -d soft0 -n 200
shows out '^ 65536 +200 +[0-9.]+ +[0-9.]+'
pair roce ib_send_bw -F -d soft0 -n 200
shows out '^ 65536 +200 +[0-9.]+ +[0-9.]+'
pair ib ib_write_lat -F -d soft0 -n 200
shows out '^ 2 +200 +[0-9.]+ +[0-9.]+ +[0-9.]+'
exit $failed
