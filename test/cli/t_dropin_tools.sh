#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: libibverbs' own examples take the soft device for a device.
# Method: unmodified, as installed, in both personalities; the pingpongs with
# polling and events, with the old and the extended interfaces, and with their
# validation of the data.
# shellcheck source=test/cli/dropin.sh
. "$(dirname "$0")/dropin.sh" ibv_devices ibv_devinfo ibv_rc_pingpong \
	ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong

for kind in roce ib; do
	over $kind ibv_devices
	shows out '^ +soft0[ 	]+0[0-9a-f]{15}$'
	over $kind ibv_devinfo -v
	[ "$status" = 0 ] || complain "$kind: ibv_devinfo: status $status"
	shows out 'state:	+PORT_ACTIVE \(4\)'
	shows out 'active_mtu:	+4096 \(5\)'
	if [ $kind = roce ]; then
		shows out 'link_layer:	+Ethernet'
		shows out 'GID\[ +0\]:	+fe80::[0-9a-f:]+, RoCE v2$'
		gid="-g 0"
	else
		shows out 'link_layer:	+InfiniBand'
		shows out 'port_lid:	+[1-9]'
		gid=
	fi
	for options in "-c" "-c -e" "-c -N" "-c -N -e" "-c -s 1" \
		"-c -s 1000000 -n 10" "-r 4 -n 500" "-m 256"; do
		# shellcheck disable=SC2086
		pair $kind ibv_rc_pingpong -n 100 $gid $options
		shows out '^[0-9]+ iters in '
		hides out 'invalid data'
	done
	# Both ends poll without pause, and what they send to private memory is
	# moved by their other threads.
	export WREATH_SOFT_FAULTS=bounce=always
	# shellcheck disable=SC2086
	pair $kind ibv_rc_pingpong -n 50 $gid -c
	unset WREATH_SOFT_FAULTS
	for tool in ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong; do
		for options in "-c -s 2048 -n 100" "-e -n 100"; do
			# shellcheck disable=SC2086
			pair $kind $tool $gid $options
			shows out '^[0-9]+ iters in '
			hides out 'invalid data'
		done
	done
done
exit $failed
