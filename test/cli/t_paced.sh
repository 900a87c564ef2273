#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: what holds on the soft device holds on ports with a rate and a latency
# too, and those are as slow as they were told.  Method: tests that take the
# device from the environment are run again on such ports; and the command's
# own figures.
# shellcheck source=test/cli/expect.sh
. "$(dirname "$0")/expect.sh"
build=${BUILD:-build}

on() {
	local ports=$1 test
	shift
	for test in "$@"; do
		export WREATH_SOFT=$ports
		run "$build/test/$test"
		unset WREATH_SOFT
		[ "$status" = 0 ] || [ "$status" = 77 ] && continue
		complain "status $status of $test on $ports"
		grep -aE 'ERROR|FAILED|error:' "$dir/out" "$dir/err" | head -n 5
	done
}

# takes US PORTS ALGORITHM SIZE: an all-reduce of two ranks, that or more.
takes() {
	local us
	export WREATH_SOFT=$2
	expect 0 "$wreath" perf all_reduce -g 2 -b "$4" -e "$4" -n 10 \
		--algo "$3"
	unset WREATH_SOFT
	us=$(awk '$1 ~ /^[0-9]+$/ { print int($6) }' "$dir/out" | head -n 1)
	[ "${us:-0}" -ge "$1" ] ||
		complain "$us us, not $1 or more: $3 of $4 bytes on $2"
}

on roce:1@10G+20us unit/t_soft_write unit/t_soft_exec unit/t_soft_atomic \
	unit/t_soft_uc unit/t_soft_ud unit/t_soft_srq unit/t_soft_rereg \
	unit/t_soft_thread unit/t_soft_chaos unit/t_soft_peer unit/t_net_conn
on ib:1@+50us loop/t_all_reduce loop/t_stream
on roce:1@2.5G+5us loop/t_lifecycle loop/t_mix

# One latency, two, and a megabyte at a gigabit a second.
takes 500 roce:1@+500us oneshot 8
takes 1000 roce:1@+500us ring 8
takes 8388 roce:1@1G ring 1M

# What a port was told is shown as it was told.
export WREATH_SOFT=ib:1,roce:1@3.5G+20us,roce@123456K
expect 0 "$wreath" info
shows out 'Ethernet, 3.5 Gb/s, latency 20 us,'
shows out 'Ethernet, 0.123456 Gb/s, MTU'
expect 0 "$wreath" info --json
json "$dir/out" '[p["latency_us"] for s in x["sources"] for d in s["devices"]
	for p in d["ports"] if d["name"].startswith("soft")] == [0, 20, 0]'
unset WREATH_SOFT

exit "$failed"
