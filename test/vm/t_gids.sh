#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: on a real kernel device ranks find addresses and ports that work,
# without a setting, and say what is wrong where there are none.
# Method: inside the virtual machine (vm.sh), as root: soft-RoCE on pairs of
# interfaces, with addresses of every kind, that come, go and change; users
# without rights.  A line for each case; the status is 1 if one failed.
set -u
cd "$(dirname "$0")/../.." || exit 2
wreath=${WREATH:-$PWD/${B:-build}/wreath}
netdev=${NETDEV:-v0}
dir=$(mktemp -d) || exit 2
chmod 755 "$dir"
failed=0
began=$SECONDS
unset "${!WREATH_@}"

verdict() {
	local word=$1
	shift
	echo "$word gids/$* ($((SECONDS - began)) s)"
	began=$SECONDS
	[ "$word" = PASS ] && return
	failed=1
	sed 's/^/    /' "$dir/out" | head -n 40
}

# judge NAME STATUS WORDS...: is $status 0, or not, as STATUS is; and does
# $dir/out hold the words, and not those after '!'?
judge() {
	local name=$1 want=$2 word
	shift 2
	[ "$status" -lt 124 ] || want=none
	if [ "$want" = none ] || [ $((want != 0)) != $((status != 0)) ]; then
		verdict FAIL "$name (status $status)"
		return
	fi
	for word in "$@"; do
		if [ "${word#!}" != "$word" ]; then
			! grep -qE -- "${word#!}" "$dir/out" || {
				verdict FAIL "$name (there is '${word#!}')"
				return
			}
		else
			grep -qE -- "$word" "$dir/out" || {
				verdict FAIL "$name (there is no '$word')"
				return
			}
		fi
	done
	verdict PASS "$name"
}

run() {
	timeout 60 "$@" >"$dir/out" 2>&1 </dev/null
	status=$?
}

perf() {
	run "$wreath" perf all_reduce -g 2 -b 8 -e 64K -f 64 -n 3 -w 1
}

# ranks FIRST SECOND: a run of two, each with words of its own environment.
cat >"$dir/rank" <<-'END'
	#!/bin/bash
	[ "$WREATH_RANK" = 0 ] && words=$FIRST || words=$SECOND
	exec env $words "$@"
END
chmod 755 "$dir/rank"
ranks() {
	FIRST=$1 SECOND=$2 run "$wreath" run -n 2 "$dir/rank" "$wreath" \
		perf all_reduce -b 8 -e 64K -f 64 -n 3 -w 1
}

right='# Out of bounds values : 0 OK'

# index_of DEVICE GID [INTERFACE]: where the table has it.
index_of() {
	local i path=/sys/class/infiniband/$1/ports/1
	for ((i = 0; i < 32; i++)); do
		[ "$(cat "$path/gids/$i" 2>/dev/null)" = "$2" ] || continue
		[ "${3:-}" = "" ] ||
			[ "$(cat "$path/gid_attrs/ndevs/$i")" = "$3" ] ||
			continue
		echo $i
		return
	done
}

# await COMMAND...: until it holds, for 5 s.
await() {
	local i
	for ((i = 0; i < 50; i++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	echo "    not within 5 s: $*"
}

# shellcheck disable=SC2317 # by await
has_gid() {
	[ -n "$(index_of "$@")" ]
}

# shellcheck disable=SC2317 # by await
is_active() {
	grep -q ACTIVE "/sys/class/infiniband/$1/ports/1/state"
}

ipv4() {
	printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' "$@"
}

# ---- addresses of every kind ----

/run/busybox modprobe 8021q
ip addr add fd77::1/64 dev "$netdev" nodad
ip link add link "$netdev" name vlan100 type vlan id 100
ip link set vlan100 up
ip addr add 10.100.0.1/24 dev vlan100
global=fd77:0000:0000:0000:0000:0000:0000:0001
await has_gid rxe0 "$(ipv4 10 100 0 1)"
await has_gid rxe0 $global
mac=$(ip -o -6 addr show dev "$netdev" scope link | awk '{ print $4 }')
mac=${mac%/*}

run "$wreath" info
judge "info tells what becomes of each address" 0 \
	"GID [0-9]+: 10.77.0.1/24 on $netdev, RoCE v2: chosen" \
	"GID [0-9]+: fd77::1/64 on $netdev, RoCE v2: candidate" \
	"GID [0-9]+: $mac/64 on $netdev, RoCE v2: link-local: only if" \
	"GID [0-9]+: 10.100.0.1/24 on vlan100, RoCE v2: candidate" \
	"GID [0-9]+: $mac/64 on vlan100, RoCE v2: link-local of a VLAN"
WREATH_LOG=info run "$wreath" info
judge "empty entries of the table make no noise" 0 '!No data available' \
	'!info: .*GID [0-9]'

export WREATH_HCA=rxe0
perf
judge "IPv4 is chosen" 0 "$right" 'rxe0:1\] RoCEv2 10.77.0.1'
for address in "$(ipv4 10 77 0 1) $netdev 10.77.0.1" \
	"$global $netdev fd77::1" "$(ipv4 10 100 0 1) vlan100 10.100.0.1"; do
	read -r gid interface text <<<"$address"
	WREATH_GID_INDEX=$(index_of rxe0 "$gid" "$interface") perf
	judge "$text on $interface works" 0 "$right" "RoCEv2 $text"
done
WREATH_GID_INDEX=0 perf
judge "link-local works" 0 "$right" "RoCEv2 $mac"

# ---- what does not fit ----

ranks "WREATH_GID_INDEX=$(index_of rxe0 "$(ipv4 10 77 0 1)")" \
	"WREATH_GID_INDEX=$(index_of rxe0 $global)"
judge "no family in common is told by both" 1 '\[0\].*10.77.0.1/24' \
	'\[1\].*10.77.0.1/24' 'fd77::1/64' 'no addresses of one family' \
	'ip addr add'
ranks "WREATH_GID_INDEX=$(index_of rxe0 "$(ipv4 10 77 0 1)")" \
	"WREATH_GID_INDEX=$(index_of rxe0 "$(ipv4 10 100 0 1)")"
judge "a VLAN is not met from outside of its subnet" 1 '10.100.0.1/24' \
	'10.77.0.1/24' 'different subnets'
WREATH_GID_INDEX=30 perf
judge "an empty entry is told with those of use" 1 \
	'WREATH_GID_INDEX=30 of rxe0 port 1, .* entries 0 to [0-9]+: is empty' \
	'\(10.77.0.1\)' '\(fd77::1\)'
WREATH_PKEY=5 perf
judge "a partition that is not there is told with those there" 1 \
	'WREATH_PKEY=5 is not in the table of rxe0 port 1, which has: 65535'

# ---- addresses that come and go ----

ip addr del 10.77.0.1/24 dev "$netdev"
perf
judge "without its IPv4 it is the VLAN's" 0 "$right" 'RoCEv2 10.100.0.1'
ip link del vlan100
perf
judge "without IPv4 it is IPv6" 0 "$right" 'RoCEv2 fd77::1'
ip addr del fd77::1/64 dev "$netdev"
perf
judge "without any it is link-local" 0 "$right" "RoCEv2 $mac"
ip addr add fd77::2/64 dev "$netdev" nodad
ip addr add 10.77.0.1/24 dev "$netdev"
await has_gid rxe0 "$(ipv4 10 77 0 1)"
perf
judge "back at another index it is IPv4 again" 0 "$right" 'RoCEv2 10.77.0.1'

# Take the address away while ranks use it, and give it back.  This device
# fails a queue pair at once when its address is gone; another may try again.
WREATH_LOG=info timeout 60 "$wreath" perf all_reduce -g 2 -b 64K -e 64K \
	--seconds 2 -w 1 >"$dir/out" 2>&1 </dev/null &
await grep -q '#wrong' "$dir/out"
sleep 1
ip addr del 10.77.0.1/24 dev "$netdev"
ip addr add fd77::3/64 dev "$netdev" nodad
sleep 0.5
ip addr add 10.77.0.1/24 dev "$netdev"
wait $!
status=$?
if [ $status = 0 ]; then
	judge "an address that is away for a moment is got over" 0 "$right" \
		'rxe0:1 .*reports IBV_EVENT_GID_CHANGE'
else
	judge "an address that goes while ranks use it is told" 1 \
		'warn: rxe0:1 .*CHANGE: GID 10.77.0.1, which .* is gone' \
		'WREATH_ENET.*GID 10.77.0.1.*reported IBV_EVENT_GID_CHANGE'
fi
ip addr del fd77::3/64 dev "$netdev"
await has_gid rxe0 "$(ipv4 10 77 0 1)"
perf
judge "and the next ranks use it at its index of now" 0 "$right" \
	'RoCEv2 10.77.0.1'

# ---- two devices ----

ip link add w0 type veth peer name w1
ip link set w1 mtu 1500 up
ip link set w0 mtu 1500 up
ip addr add 10.78.0.1/24 dev w0
rdma link add rxe1 type rxe netdev w0
await has_gid rxe1 "$(ipv4 10 78 0 1)"
await is_active rxe1
unset WREATH_HCA
ranks WREATH_HCA=rxe0 WREATH_HCA=rxe1
judge "devices of different subnets are told by both ranks" 1 \
	'\[0\].*rxe0:1 \(Ethernet 10.77.0.1/24' '\[1\].*rxe1:1 \(Ethernet' \
	'10.78.0.1/24' 'different subnets' 'WREATH_HCA'
ranks WREATH_HCA=rxe0,rxe1 WREATH_HCA=rxe1
judge "the device that both have is chosen" 0 "$right" \
	'rxe1:1\] RoCEv2 10.78.0.1'
ranks WREATH_HCA=rxe1,rxe0 WREATH_HCA=rxe0,rxe1
judge "the order of devices does not matter" 0 "$right" 'RoCEv2 10.7[78].0.1'
ranks WREATH_HCA=rxe1 WREATH_SOFT=off
judge "a rank without a choice takes what the other has" 0 "$right" \
	'rxe1:1\] RoCEv2 10.78.0.1'
ranks WREATH_HCA=soft0 "WREATH_HCA=rxe0"
judge "soft and RDMA device do not meet" 1 'soft0:1 \(Ethernet, this host' \
	'rxe0:1 \(Ethernet' 'WREATH_HCA'
WREATH_HCA=rxe1 perf
judge "an MTU of 1500 works" 0 "$right"

ip link set "$netdev" down
WREATH_SOFT=off perf
judge "of two devices the one that is up is taken" 0 "$right" \
	'rxe1:1\] RoCEv2 10.78.0.1'
run "$wreath" info
judge "info tells of the one that is down" 0 'port 1: down' \
	'interface is down'
(
	sleep 1.5
	ip link set "$netdev" up
) &
WREATH_HCA=rxe0 perf
judge "a port that comes up late is waited for" 0 "$right" \
	'rxe0:1 is not active.*waiting for it' 'rxe0:1\] RoCEv2 10.77.0.1'
wait
ip link set "$netdev" down
WREATH_JOIN_TIMEOUT=12s WREATH_HCA=rxe0 perf
judge "one that does not is told" 1 'rxe0:1 is not active, but down'
ip link set "$netdev" up
await is_active rxe0

# ---- rights ----

export WREATH_HCA=rxe0
as_nobody() {
	run setpriv --reuid=65534 --regid=65534 --clear-groups \
		--no-new-privs "$@"
}
chmod 000 /dev/infiniband/uverbs*
as_nobody "$wreath" perf all_reduce -g 2 -b 8 -e 8 -n 5
judge "a device without permission is told with its file" 1 \
	'cannot open rxe0.*Permission denied.*/dev/infiniband/uverbs' \
	'user 65534'
as_nobody "$wreath" info
judge "info tells why it cannot be opened" 0 \
	'cannot open rxe0.*Permission denied'
chmod 666 /dev/infiniband/uverbs*
as_nobody bash -c "ulimit -l unlimited 2>/dev/null; exec '$wreath' perf \
	all_reduce -g 2 -b 8 -e 8 -n 5"
if [ "$status" = 0 ]; then
	judge "a user without privileges can use it" 0 "$right"
else
	judge "a user's limit is told" 1 'RLIMIT_MEMLOCK'
fi
as_nobody bash -c "ulimit -l 64; exec '$wreath' perf all_reduce -g 2 \
	-b 8 -e 8 -n 5"
judge "too little memory to lock is told with the remedies" 1 \
	'RLIMIT_MEMLOCK.*lock 65536 bytes.*are needed' 'ulimit -l unlimited' \
	'LimitMEMLOCK=infinity' '--ulimit memlock=-1'

rdma link delete rxe1
ip link del w0
rm -rf "$dir"
[ $failed = 0 ] && echo "t_gids: all passed"
exit $failed
