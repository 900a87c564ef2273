#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: NCCL's variables mean what they mean in NCCL, as far as wreath can, and
# what is left out is said.  Method: the part of the library that maps them is
# run by itself, with a folder of devices that this test makes.
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0
for device in mlx5_0 mlx5_1 mlx5_10 rocep1; do
	mkdir -p "$dir/ib/$device/ports/1/pkeys"
	echo 0xffff >"$dir/ib/$device/ports/1/pkeys/0"
	echo 0x8001 >"$dir/ib/$device/ports/1/pkeys/1"
done
for name in $(compgen -e); do
	case $name in
	NCCL_*) unset "$name" ;;
	esac
done

# run VARIABLE=VALUE...: what wreath will see into out, what is said into err.
run() {
	env "$@" "$BUILD/test/nccl/env" "$dir/ib" >"$dir/out" 2>"$dir/err"
}

fault() {
	echo "$*"
	cat "$dir/out" "$dir/err"
	failed=1
}

# maps NCCL_X=VALUE WREATH_Y=VALUE: so it is mapped, without a word.
maps() {
	run "$1"
	[ "$(cat "$dir/out")" = "$2" ] || fault "$1 is not $2"
	[ ! -s "$dir/err" ] || fault "$1: something is said"
}

# tells NCCL_X=VALUE WORDS [WREATH_Y=VALUE]: it is said, and mapped or not.
tells() {
	run "$1"
	grep -qF -e "$2" "$dir/err" || fault "$1: not said: $2"
	[ "$(cat "$dir/out")" = "${3:-}" ] || fault "$1 is not '${3:-}'"
}

maps NCCL_DEBUG=warn WREATH_LOG=warn
run NCCL_DEBUG=INFO NCCL_IB_TC=106
grep -qx WREATH_LOG=info "$dir/out" || fault "INFO"
grep -q 'NCCL_IB_TC=106 is taken for WREATH_TRAFFIC_CLASS=106' "$dir/err" ||
	fault "what is mapped is not told at INFO"
run NCCL_DEBUG=TRACE
grep -qx WREATH_LOG=debug "$dir/out" || fault "TRACE"
tells NCCL_DEBUG=LOUD "not one of VERSION, WARN"
maps NCCL_ALGO=Ring WREATH_ALGO=ring
maps NCCL_ALGO=TREE WREATH_ALGO=tree
tells NCCL_ALGO=^Tree "only Ring or Tree alone"
tells NCCL_ALGO=Ring,Tree "only Ring or Tree alone"

# Beginnings, exact names, all but some, and ports.
maps NCCL_IB_HCA=mlx5_1 WREATH_HCA=soft0,mlx5_1,mlx5_10
maps NCCL_IB_HCA==mlx5_1 WREATH_HCA=soft0,mlx5_1
maps NCCL_IB_HCA=mlx5 WREATH_HCA=soft0,mlx5_0,mlx5_1,mlx5_10
maps NCCL_IB_HCA=^mlx5_1 WREATH_HCA=soft0,mlx5_0,rocep1
maps NCCL_IB_HCA=^=mlx5_1,mlx5_0 WREATH_HCA=soft0,mlx5_10,rocep1
maps NCCL_IB_HCA==mlx5_0:1,rocep1:2 WREATH_HCA=soft0,mlx5_0:1,rocep1:2
tells NCCL_IB_HCA=efa "no RDMA device of this host is in it"
tells NCCL_IB_HCA=^=mlx5_1:2 "left out whole" \
	WREATH_HCA=soft0,mlx5_0,mlx5_10,rocep1
maps NCCL_IB_DISABLE=1 WREATH_HCA=soft0
maps NCCL_IB_DISABLE=0 ""
tells NCCL_IB_DISABLE=yes "not a whole number from 0 to 1"

maps NCCL_IB_GID_INDEX=3 WREATH_GID_INDEX=3
maps NCCL_IB_TC=0x6a WREATH_TRAFFIC_CLASS=106
tells NCCL_IB_TC=256 "from 0 to 255"
maps NCCL_IB_SL=5 WREATH_SL=5
tells NCCL_IB_SL=16 "from 0 to 15"
maps NCCL_IB_PKEY=1 WREATH_PKEY=32769
maps NCCL_IB_PKEY=0 WREATH_PKEY=65535
tells NCCL_IB_PKEY=7 "no RDMA device has a partition key at place 7"
# 4.096 us * 2^20 * 7
maps NCCL_IB_TIMEOUT=20 WREATH_QP_TIMEOUT=30065ms
maps NCCL_IB_TIMEOUT=1 WREATH_QP_TIMEOUT=10ms
tells NCCL_IB_TIMEOUT=32 "from 1 to 31"
run NCCL_IB_TIMEOUT=20 NCCL_IB_RETRY_CNT=1
grep -qx WREATH_QP_TIMEOUT=4295ms "$dir/out" || fault "NCCL_IB_RETRY_CNT"

maps NCCL_SOCKET_IFNAME==lo WREATH_SOCKET_IFNAME=lo
maps NCCL_SOCKET_IFNAME=l WREATH_SOCKET_IFNAME=lo
tells NCCL_SOCKET_IFNAME==l "no interface of this host"
run NCCL_SOCKET_IFNAME=^lo
! grep -qx WREATH_SOCKET_IFNAME=lo "$dir/out" || fault "^lo is lo"

maps NCCL_MIN_NCHANNELS=2 WREATH_CHANNELS=2
tells NCCL_MIN_NCHANNELS=32 "4 channels are the most" WREATH_CHANNELS=4
maps NCCL_MAX_NCHANNELS=1 WREATH_CHANNELS=1
maps NCCL_MAX_NCHANNELS=8 ""
maps NCCL_P2P_DISABLE=1 WREATH_GPU_IPC=off
maps NCCL_P2P_LEVEL=LOC WREATH_GPU_IPC=off
maps NCCL_P2P_LEVEL=SYS ""
maps NCCL_NET_GDR_LEVEL=LOC WREATH_GPU_DIRECT=off
maps NCCL_NET_GDR_LEVEL=PHB ""
tells NCCL_NET_GDR_LEVEL=XYZ "not one of LOC"
maps NCCL_DMABUF_ENABLE=0 WREATH_GPU_DIRECT=peermem

# What wreath was told itself stays.
run NCCL_IB_TC=8 WREATH_TRAFFIC_CLASS=9
[ "$(cat "$dir/out")" = WREATH_TRAFFIC_CLASS=9 ] || fault "it was overwritten"

tells NCCL_COMM_ID=10.0.0.1:2000 "ncclGetUniqueId"
tells NCCL_DEBUG_FILE=x "stderr"
tells NCCL_DEBUG_SUBSYS=INIT "no parts"
run NCCL_PROTO=LL NCCL_CROSS_NIC=1
grep -q 'ignored, since.*NCCL_' "$dir/err" || fault "not named as ignored"
grep -q NCCL_PROTO "$dir/err" || fault "not named as ignored"
grep -q NCCL_CROSS_NIC "$dir/err" || fault "not named as ignored"
[ "$(wc -l <"$dir/err")" = 1 ] || fault "more than one line of names"
tells NCCL_IB_HCAS=x "did you mean NCCL_IB_HCA?"
tells NCCL_DEBUGG=x "did you mean NCCL_DEBUG?"
tells NCCL_WHAT_IS_THIS=x "wreath_nccl(7)"
run WREATH_LOG=off NCCL_WHAT=1 NCCL_COMM_ID=1 NCCL_PROTO=1
[ ! -s "$dir/err" ] || fault "something is said with WREATH_LOG=off"
exit $failed
