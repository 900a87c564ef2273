#!/bin/bash
# SPDX-License-Identifier: MIT
#
# t_cm.sh [BUILD]: connections by librdmacm over rxe0.  Runs inside the virtual
# machine, as root, in the top folder; prints a line of PASS, FAIL or SKIP for
# each test, what a failed one said, and ends with 1 if one failed.
build=${1:-build}
log=$(mktemp)
failed=0
export WREATH_HCA=rxe0 WREATH_CONNECT=cm

verdict() {
	case $1 in
	0) echo "PASS cm/$2" ;;
	77) echo "SKIP cm/$2: $(tail -n 1 "$log")" ;;
	*)
		echo "FAIL cm/$2 (status $1)"
		tail -n 20 "$log" | sed 's/^/    /'
		failed=1
		;;
	esac
}

# one NAME SECONDS COMMAND...
one() {
	name=$1
	seconds=$2
	shift 2
	timeout -k 2 "$seconds" "$@" >"$log" 2>&1
	verdict $? "$name"
}

perf() {
	one "$1" 60 "$build/wreath" perf all_reduce "${@:2}" -b 8 -e 64K \
		-f 16 -n 2 -w 1
}

# expect NAME STATUS TEXT: the last command's, and what it must have said.
expect() {
	if [ "$2" != 0 ] && grep -q -e "$3" "$log"; then
		verdict 0 "$1"
	else
		echo "(looked for: $3)" >>"$log"
		verdict "1, $2" "$1"
	fi
}

refused() {
	timeout -k 2 30 "$build/wreath" perf all_reduce -g 2 -b 8 -e 8 -n 1 \
		>"$log" 2>&1
	expect "$1" $? "$2"
}

for unit in net_card verbs_cm net_cm net_connect; do
	one "t_$unit" 110 "$build/test/unit/t_$unit"
done
for ranks in 2 3 5 8; do
	perf "$ranks ranks" -g "$ranks"
done
perf "ring, then twoshot: connections made at two times" -g 3 \
	--algo ring,twoshot
WREATH_CHANNELS=4 perf "four queue pairs a pair" -g 2
WREATH_TRAFFIC_CLASS=96 perf "a type of service" -g 2
ip addr add fd77::1/64 dev "$NETDEV" nodad 2>/dev/null
sleep 1
link_local=$(grep -l '^fe80' /sys/class/infiniband/rxe0/ports/1/gids/* |
	head -n 1)
global=$(grep -l '^fd77' /sys/class/infiniband/rxe0/ports/1/gids/* |
	head -n 1)
WREATH_GID_INDEX=${link_local##*/} perf "IPv6, link-local" -g 2
WREATH_GID_INDEX=${global##*/} perf "IPv6, global" -g 2
WREATH_HCA='' WREATH_SOFT=roce:1 perf "soft device: the exchange" -g 2

# A rank that dies while others work: they are told, and nothing hangs.
timeout -k 2 60 "$build/wreath" perf all_reduce -g 3 -b 64K -e 64K -N 0 \
	>"$log" 2>&1 &
running=$!
sleep 6
victim=$(pgrep -P "$(pgrep -P $running)" | tail -n 1)
start=$SECONDS
kill -9 "${victim:-$running}" 2>/dev/null
wait $running
status=$?
[ $((SECONDS - start)) -lt 25 ] || echo "took $((SECONDS - start)) s" >>"$log"
expect "a rank that dies" "$status" 'rank [0-9]'

# None of it leaves an identifier or a queue pair in the kernel.
sleep 1
rdma resource show cm_id >"$log" 2>&1
rdma resource show qp 2>&1 | grep 'type RC' >>"$log"
if grep -q wreath "$log"; then
	verdict 1 "nothing is left"
else
	verdict 0 "nothing is left"
fi

WREATH_CONNECT=both refused "another word" 'is not one of: exchange cm'
mv /dev/infiniband/rdma_cm /dev/infiniband/hidden
refused "no /dev/infiniband/rdma_cm" 'modprobe rdma_ucm'
mv /dev/infiniband/hidden /dev/infiniband/rdma_cm
rm -f "$log"
exit $failed
