#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: the runner tells a test that passed from one that did not, and bounds
# each.  Method: small tests with a known end are given to test/one.sh, and its
# line is read.
set -u
RESULTS=$(mktemp -d) || exit 1
export RESULTS PATIENCE=4
trap 'rm -rf "$RESULTS"; rm -f "/dev/shm/wreath-runner-$$"' EXIT
failed=0

# says PATTERN SECONDS COMMAND...: the first line of one.sh matches.
says() {
	local pattern=$1 seconds=$2 out
	shift 2
	out=$(test/one.sh a/test "$seconds" "$@")
	# shellcheck disable=SC2254
	case $out in
	$pattern) ;;
	*)
		echo "expected '$pattern', got '$out' from: $*"
		failed=1
		;;
	esac
}

says 'PASS a/test *' 5 true
says 'FAIL a/test *exit status 3*' 5 sh -c 'exit 3'
says 'FAIL a/test *| the last words*' 5 sh -c 'echo the last words; exit 1'
says 'FAIL a/test *killed by signal 11*' 5 sh -c 'kill -SEGV $$'
says 'FAIL a/test *exit status 127*' 5 "$RESULTS/does-not-exist"
says 'SKIP a/test * no such thing' 5 sh -c 'echo x; echo no such thing; exit 77'
says 'FAIL a/test *timed out after 1 s*' 1 sleep 30
says 'FAIL a/test *left processes behind: * sleep*' 5 \
	sh -c 'sleep 30 & exit 0'
says 'FAIL a/test *left processes behind: * sleep*' 5 \
	sh -c 'setsid sleep 30 & exit 0'
# A child that ends soon after its parent is no fault.
says 'PASS a/test *' 5 sh -c 'sleep 0.5 & exit 0'
says 'FAIL a/test *left behind: /dev/shm/wreath-runner-*' 5 \
	touch "/dev/shm/wreath-runner-$$"
# shellcheck disable=SC2016
says 'FAIL a/test *left in TMPDIR: here*' 5 sh -c 'touch "$TMPDIR/here"'
# shellcheck disable=SC2016
says 'PASS a/test *' 5 sh -c 'touch "$TMPDIR/here"; rm "$TMPDIR/here"'
[ "$(sort "$RESULTS/verdicts" | uniq -c | tr -s ' \n' ' ')" = \
	" 9 FAIL 3 PASS 1 SKIP " ] || {
	echo "verdicts: $(sort "$RESULTS/verdicts" | uniq -c)"
	failed=1
}

# What a test started is ended also when the runner itself is told to end.
# shellcheck disable=SC2016
test/one.sh a/test 20 sh -c 'setsid sh -c "echo \$\$ >$RESULTS/pid
	exec sleep 19" & sleep 19' >/dev/null & runner=$!
for _ in {1..50}; do
	[ ! -s "$RESULTS/pid" ] || break
	sleep 0.1
done
kill "$runner"
wait "$runner"
sleep 0.3
if [ ! -s "$RESULTS/pid" ]; then
	echo "the test did not begin"
	failed=1
elif kill -0 "$(cat "$RESULTS/pid")" 2>/dev/null &&
	! grep -q '^State:.*Z' "/proc/$(cat "$RESULTS/pid")/status"; then
	echo "a test outlives the runner"
	failed=1
fi
exit $failed
