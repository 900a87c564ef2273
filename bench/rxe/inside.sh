#!/bin/bash
# SPDX-License-Identifier: MIT
#
# inside.sh BUILD DEVICE GID_INDEX ROUNDS: on a machine that has the RDMA
# device, measure in turn what it can do (perftest), Open MPI over UCX, and
# wreath; a line "WHO ROUND BYTES VALUE" each: microseconds, or for perftest's
# bandwidth MiB/s of both directions together.
set -u
build=$1
device=$2
gid=$3
rounds=$4
export TMPDIR=/tmp WREATH_HCA=$device
log=$(mktemp)

# Both ends of a perftest program, which meet by TCP on this host.
perftest() {
	local server
	timeout 60 "$@" -F -d "$device" -x "$gid" -m 4096 >/dev/null 2>&1 &
	server=$!
	# It listens some time after it has started; a client that comes too
	# early ends with an error.
	for _ in $(seq 50); do
		sleep 0.2
		timeout 60 "$@" -F -d "$device" -x "$gid" -m 4096 localhost \
			>"$log" 2>&1 && break
		kill -0 $server 2>/dev/null || break
	done
	wait $server
	cat "$log"
}

openmpi() {
	local root=()
	[ "$(id -u)" != 0 ] || root=(--allow-run-as-root)
	# UD's check of the destination fails on soft-RoCE's loopback.
	UCX_TLS=rc_v,ud_v,self UCX_NET_DEVICES=$device:1 \
		UCX_IB_GID_INDEX=$gid UCX_UD_VERBS_ETH_DGID_CHECK=n \
		timeout 100 mpirun.openmpi "${root[@]}" --mca pml ucx \
		--mca opal_common_ucx_tls any \
		--mca opal_common_ucx_devices any \
		--bind-to core -n 2 "$build/peers/openmpi" all_reduce "$@"
}

for round in $(seq "$rounds"); do
	perftest ib_write_lat -s 8 -n 2000 |
		awk -v r="$round" '$1 == 8 { print "lat", r, 8, $5 }'
	# Messages a second of both ends, each waiting for its own to be
	# acknowledged: what a rank's part of an exchange costs at least.
	perftest ib_write_bw -b -t 1 -s 8 -n 5000 |
		awk -v r="$round" '$1 == 8 { print "turn", r, 8, 2 / $5 }'
	perftest ib_write_bw -b -s 65536 -n 400 |
		awk -v r="$round" '$1 == 65536 { print "bw", r, 65536, $4 }'
	openmpi 1.5 0 8 65536 1048576 4194304 2>"$log" |
		awk -v r="$round" 'NF == 2 { print "openmpi", r, $1, $2 }'
	[ ! -s "$log" ] || sed 's/^/# openmpi: /' "$log" | head -n 3
	timeout 100 "$build/wreath" perf all_reduce -g 2 -q --place out \
		--seconds 1.5 --csv - --buffers alloc \
		--sizes 8,65536,1048576,4194304 |
		awk -F, -v r="$round" 'NR > 1 { print "wreath", r, $5, $11 }'
done
rm -f "$log"
