#!/bin/bash
# SPDX-License-Identifier: MIT
#
# ways.sh BUILD: two virtual machines, a rank on each, and addresses of which
# only some work.  Goal: the ranks find the pair that does, or both say that
# there is none.  Prints a line for each case: PASS or FAIL.  Exits with 77
# where there is no machine to be had.
#
# The machines call this again, with their number behind BUILD.
set -u
cd "$(dirname "$0")/../.." || exit
build=${1:-build}
limit=${WAYS_SECONDS:-200}
right='# Out of bounds values : 0 OK'

# attempt NAME PORT: both run a rank; what they write goes between marks.
attempt() {
	echo "@ $1"
	WORLD_SIZE=2 RANK=$((number - 1)) MASTER_PORT=$2 \
		TORCHELASTIC_RUN_ID=ways WREATH_JOIN_TIMEOUT=60s \
		timeout 60 "$build/wreath" perf all_reduce -b 8 -e 64K -f 64 \
		-n 3 -w 1 2>&1 </dev/null
	echo "@ end $?"
	# The first rank's root may be reached a moment longer.
	sleep 1
}

# As soon as the address is there, so is its GID.
await_gid() {
	local i
	for ((i = 0; i < 50; i++)); do
		! grep -qs "$1" /sys/class/infiniband/rxe0/ports/1/gids/* ||
			return
		sleep 0.1
	done
}

machine() {
	local arp=/proc/sys/net/ipv4/conf/$NETDEV/arp_ignore
	ip addr add "fd77::$number/64" dev "$NETDEV" nodad
	await_gid fd77
	export MASTER_ADDR=fd77::1
	[ "$number" = 1 ] || ip link set "$NETDEV" mtu 1500
	attempt mtu 29501
	# Nobody answers who has an IPv4 address.
	echo 8 >"$arp"
	ip neigh flush dev "$NETDEV"
	attempt next 29502
	ip addr add "10.5$number.0.1/24" dev "$NETDEV"
	await_gid "0a3$((number + 2)):0001"
	WREATH_GID_INDEX=3 attempt subnets 29503
	echo 0 >"$arp"
	WREATH_GID_INDEX=$number attempt families 29504
}

number=${2:-}
[ -z "$number" ] || {
	machine
	exit 0
}

out=build/vm/ways
mkdir -p "$out"
# start NUMBER -l|-c PORT
start() {
	exec timeout -k 5 $((limit + 10)) test/vm/vm.sh -n "ways$1" "$2" "$3" \
		-p 1 -m 1024 -t "$limit" "test/vm/ways.sh $build $1" \
		>"$out/$1" 2>&1
}
first=
second=
# shellcheck disable=SC2086
trap 'kill $first $second 2>/dev/null; wait; exit 130' INT TERM HUP
# A port that is taken ends the first machine; seen, not tried, since that
# machine takes one caller only.
for try in 1 2 3; do
	port=$((20000 + RANDOM % 12000))
	start 1 -l "$port" &
	first=$!
	for ((i = 0; i < 100; i++)); do
		sleep 0.1
		grep -q ":$(printf %04X "$port") .* 0A " /proc/net/tcp &&
			break 2
		kill -0 "$first" 2>/dev/null || break
	done
	kill "$first" 2>/dev/null
	wait "$first"
	[ $try -lt 3 ] || cat "$out/1"
done
start 2 -c "$port" &
second=$!
wait $first
status=$?
wait $second || status=$?
[ "$status" != 77 ] || {
	cat "$out/1"
	exit 77
}
failed=0

# said NUMBER CASE: what machine NUMBER wrote in it.
said() {
	awk -v name="@ $2" '/^@ / { in_it = $0 == name; next } in_it' "$out/$1"
}

# judge CASE WHAT NUMBER:WORDS...: what each machine must have written.
judge() {
	local name=$1 what=$2 word
	shift 2
	for word in "$@"; do
		! said "${word%%:*}" "$name" | grep -qE -- "${word#*:}" ||
			continue
		echo "FAIL ways/$name: $what (machine ${word%%:*} does not" \
			"say '${word#*:}')"
		for number in 1 2; do
			said $number "$name" | cut -c 1-1200 |
				sed "s/^/    $number: /"
		done
		failed=1
		return
	done
	echo "PASS ways/$name: $what"
}

judge mtu "MTUs of 4500 and 1500 meet" "1:$right"
judge next "where IPv4 does not answer, IPv6 is next at both" "1:$right" \
	'1:reaches .* not by rxe0:1 10.77.0.1 to rxe0:1 10.77.0.2' \
	'2:reaches .* not by rxe0:1 10.77.0.2 to rxe0:1 10.77.0.1'
judge subnets "no way between subnets is told by both" \
	'1:first has rxe0:1 \(Ethernet 10.51.0.1/24\); the second .*10.52.0.1' \
	'2:first has rxe0:1 \(Ethernet 10.52.0.1/24\); the second .*10.51.0.1' \
	'1:different subnets.*no way between'
judge families "IPv4 only and IPv6 only is told by both" \
	'1:no addresses of one family' '2:no addresses of one family'
[ "$status" = 0 ] || {
	echo "a machine ended with $status"
	tail -n 5 "$out/1" "$out/2"
}
[ "$status$failed" = 00 ]
