#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: UCX's transports over plain verbs take the soft device.
# Method: ucx_perftest, unmodified, in both personalities, with few rounds:
# messages, puts, gets and atomics, short, copied and in place; by one
# transport, and through UCP, which finds its peers by UD.
# shellcheck source=test/cli/dropin.sh
. "$(dirname "$0")/dropin.sh" ucx_perftest
[ -e "$build/soft/ucx.so" ] || { echo "no ucx.so"; exit 77; }
export LD_PRELOAD=$build/soft/ucx.so UCX_WARN_UNUSED_ENV_VARS=n

# perf KIND TRANSPORT|ucp OPTIONS...
perf() {
	local kind=$1 transport=$2 port=$((20000 + RANDOM % 12000)) server
	local -x UCX_TLS=rc_verbs,ud_verbs,self UCX_NET_DEVICES=soft0:1
	shift 2
	[ "$transport" = ucp ] || set -- -x "$transport" -d soft0:1 "$@"
	WREATH_SOFT=$kind:1 LD_LIBRARY_PATH=$build/soft timeout -k 5 60 \
		ucx_perftest -p $port >"$dir/server" 2>&1 &
	server=$!
	within 10 listens $port || complain "$kind: no server on $port"
	over "$kind" ucx_perftest -p $port localhost -w 5 "$@"
	[ "$status" = 0 ] || complain "$kind: $transport $*: $(grep ERROR \
		"$dir/out" "$dir/err" "$dir/server")"
	shows out '^Final: +[0-9]+ '
	wait $server
}

for kind in roce ib; do
	perf $kind rc_verbs -t am_lat -n 50 -D short
	perf $kind rc_verbs -t am_lat -n 50 -D bcopy -s 4000
	perf $kind rc_verbs -t am_bw -n 500 -D zcopy -s 8000
	perf $kind rc_verbs -t put_lat -n 50 -D short
	perf $kind rc_verbs -t put_bw -n 500 -D zcopy -s 65536
	perf $kind rc_verbs -t get -n 200 -D bcopy -s 4000
	perf $kind rc_verbs -t get -n 200 -D zcopy -s 65536
	perf $kind rc_verbs -t add_mr -n 100
	perf $kind rc_verbs -t fadd -n 20
	perf $kind rc_verbs -t cswap -n 20
	perf $kind ud_verbs -t am_lat -n 50 -D short
	perf $kind ud_verbs -t am_bw -n 500 -D zcopy -s 4000
	perf $kind ucp -t tag_lat -n 50
	perf $kind ucp -t tag_bw -n 200 -s 100000
	perf $kind ucp -t stream_bw -n 200
	perf $kind ucp -t ucp_get -n 100 -s 65536
	perf $kind ucp -t ucp_fadd -n 20
	perf $kind ucp -t ucp_am_bw -n 200 -s 200000
done
exit $failed
