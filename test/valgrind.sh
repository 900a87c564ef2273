#!/bin/sh
# SPDX-License-Identifier: MIT
#
# valgrind.sh PROGRAM: 99 if it touched memory that it should not have, itself
# or any process that it forked, or if the program itself lost memory.  What
# ends by _exit() leaves its parent's memory where it is; that is no loss.
log=$(mktemp -d) || exit 1
trap 'rm -rf "$log"' EXIT
trap 'cat "$log"/*; exit 1' TERM
valgrind -q --fair-sched=try --error-exitcode=99 --leak-check=full \
	--show-leak-kinds=definite --errors-for-leak-kinds=none \
	--suppressions="$(dirname "$0")/valgrind.supp" \
	--log-file="$log/%p" "$@" &
program=$!
wait $program
status=$?
cat "$log"/*
[ $status = 0 ] && grep -q 'definitely lost' "$log/$program" && status=99
exit $status
