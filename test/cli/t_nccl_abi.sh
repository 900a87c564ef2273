#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: a program of NCCL runs on libwreath-nccl as on NCCL.  Method: it is
# compiled with our nccl.h and, where there is one, with NCCL's own, linked with
# a library called libnccl.so.2 whose functions trap, and every test of it is
# run with ours in the folder that has NCCL's name.
set -u
failed=0

for program in "$BUILD"/test/nccl/{own,theirs}/abi; do
	if [ ! -x "$program" ]; then
		echo "no nccl.h of NCCL's: $program is left out"
		continue
	fi
	tests=$(LD_LIBRARY_PATH=$BUILD/nccl "$program") || failed=1
	[ "$(wc -w <<<"$tests")" -ge 14 ] || failed=1
	for test in $tests; do
		LD_LIBRARY_PATH=$BUILD/nccl timeout 60 "$program" "$test" || {
			echo "$program $test: exit status $?"
			failed=1
		}
	done
done
exit $failed
