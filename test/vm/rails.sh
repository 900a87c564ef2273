#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: ranks that are given two devices in different subnets use both, each
# for its share of the vector, in one node and in two.
# Method: inside the virtual machine, as root: a second soft-RoCE beside rxe0,
# results checked by the command and by a test of all collectives, and packets
# counted on either.  rails.sh BUILD; a line for each case.
set -u
build=$1
shift
export LC_ALL=C
class=/sys/class/infiniband

# both SHARE COMMAND...: it succeeds, and either device sends a SHAREth of all
# packets at least.
both() {
	local counter=ports/1/hw_counters/sent_pkts share=$1 sent0 sent1
	shift
	sent0=$(<$class/rxe0/$counter) sent1=$(<$class/rxe1/$counter)
	WREATH_HCA=rxe0,rxe1 "$@" || return
	sent0=$(($(<$class/rxe0/$counter) - sent0))
	sent1=$(($(<$class/rxe1/$counter) - sent1))
	echo "packets by rxe0: $sent0, by rxe1: $sent1"
	[ $((sent0 + sent1)) -ge 100 ] &&
		[ $((sent0 * share)) -ge $((sent0 + sent1)) ] &&
		[ $((sent1 * share)) -ge $((sent0 + sent1)) ]
}

told() {
	WREATH_HCA=rxe0,rxe1 "$build/wreath" info | tee /dev/stderr |
		grep -A 2 '^rails' | grep 'within.*rxe0:1.*, rxe1:1 '
}

# A case by itself, in a process that the runner watches.
[ $# = 0 ] || {
	"$@"
	exit
}

mkdir -p "$RESULTS"
ip link add w0 type veth peer name w1
ip link set w1 mtu 4500 up
ip link set w0 mtu 4500 up
ip addr add 10.78.0.1/24 dev w0
rdma link add rxe1 type rxe netdev w0
trap 'rdma link delete rxe1; ip link delete w0' EXIT
for ((i = 0; i < 50; i++)); do
	ibv_devinfo -d rxe1 -v 2>/dev/null | grep -q 'GID\[  *1\]' && break
	sleep 0.1
done

one() {
	local name=$1
	shift
	test/one.sh "rails/$name [rxe0,rxe1]" 60 "$0" "$build" "$@"
}
perf() {
	local share=$1
	shift
	one "$*" both "$share" "$build/wreath" perf "$@" -b 64K -e 200K -f 3 \
		-n 2 -w 1
}

one info told
perf 3 all_reduce -g 3 --algo ring
perf 3 all_to_all -g 3
# Within a node all goes by one port.
perf 12 all_reduce -g 4 --nodes 2 --algo split-ring
