#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: the library takes NCCL's place in each way that wreath_nccl(7) has.
# Method: a program that was linked with a libnccl.so.2 whose functions trap, by
# DT_RPATH and without, is run on ours; where NCCL itself is installed, that is
# what ours takes the place of.
set -u
case ${TEST_UNDER:-} in
*address* | *thread*)
	echo "what the sanitizers preload must come first"
	exit 77
	;;
esac
failed=0
abi=$BUILD/test/nccl/own/abi
rpath=$BUILD/test/nccl/own/rpath
stub=$BUILD/test/nccl/stub
so=$BUILD/libwreath-nccl.so.0

# works WHAT COMMAND...
works() {
	local what=$1
	shift
	timeout 60 env "$@" >/dev/null || {
		echo "$what: exit status $?"
		failed=1
	}
}

# traps WHAT COMMAND...: what it is not run with is what it was linked with.
traps() {
	local what=$1
	shift
	# In a shell of its own, which would tell of the signal.
	if (timeout 60 env "$@"; exit $?) >/dev/null 2>&1; then
		echo "$what: works, and should not"
		failed=1
	fi
}

works "the folder" LD_LIBRARY_PATH="$BUILD/nccl" "$abi" all
works "the folder, of processes" LD_LIBRARY_PATH="$BUILD/nccl" "$abi" processes
works "preloaded" LD_PRELOAD="$so" LD_LIBRARY_PATH="$stub" "$abi" all
works "preloaded, of processes" LD_PRELOAD="$so" LD_LIBRARY_PATH="$stub" \
	"$abi" processes
works "preloaded, RPATH" LD_PRELOAD="$so" "$rpath" all
# RPATH goes before LD_LIBRARY_PATH: only preloading helps.
traps "the folder, RPATH" LD_LIBRARY_PATH="$BUILD/nccl" "$rpath" version
for dir in /usr/local/cuda/lib /usr/local/cuda/lib64; do
	[ -e "$dir/libnccl.so.2" ] || continue
	works "preloaded before NCCL" LD_PRELOAD="$so" LD_LIBRARY_PATH="$dir" \
		"$abi" all
	break
done
# It says what it is to whoever asks for the version.
NCCL_DEBUG=VERSION LD_LIBRARY_PATH=$BUILD/nccl "$abi" configs 2>&1 |
	grep -q 'wreath [0-9.]* in place of NCCL 2\.28' || {
	echo "NCCL_DEBUG=VERSION does not tell"
	failed=1
}
exit $failed
