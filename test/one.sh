#!/bin/bash
# SPDX-License-Identifier: MIT
#
# one.sh NAME SECONDS COMMAND...: run one test within a bound and say how it
# went, in one line; after a failure the end of its log follows.  The verdict
# is added to $RESULTS/verdicts.
#
# A test that leaves something behind has failed: a process that it started
# (known by the session, or by a mark in the environment where it made a
# session of its own), a file in /dev/shm, or a file in its own TMPDIR.
set -u
name=$1
seconds=$2
shift 2
log=${name/ \[/.}
log=$RESULTS/${log/]/}.log
mark=$$.$RANDOM$RANDOM
mkdir -p "$(dirname "$log")"
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/wreath-test.XXXXXX")
export TMPDIR

shm_entries() {
	find /dev/shm -mindepth 1 -printf '%P\n' 2>/dev/null | sort
}

# Processes of the test that are not zombies: of its session, or marked.
left_processes() {
	{
		# The name may hold anything; after it: state, parent, group,
		# session.
		cat /proc/[0-9]*/stat 2>/dev/null | sed 's/(.*)/-/' |
			awk -v session="$session" \
				'$6 == session && $3 != "Z" { print $1 }'
		grep -lsa "TEST_MARK=$mark" /proc/[0-9]*/environ |
			tr -dc '0-9\n'
	} | sort -u
}

# Where it is allowed a test has a /dev/shm of its own, and writes what is left
# there in the end.  Elsewhere: entries that came and that no living process
# has open, since others may be at work on this machine.
left_shm() {
	local entry
	if [ -n "$private" ]; then
		cat "$TMPDIR.after" 2>/dev/null
		return
	fi
	comm -13 "$TMPDIR.before" <(shm_entries) | while read -r entry; do
		grep -qs "/dev/shm/$entry" /proc/[0-9]*/maps ||
			find /proc/[0-9]*/fd -lname "/dev/shm/$entry" \
				2>/dev/null | grep -q . ||
			echo "/dev/shm/$entry"
	done
}

kill_all() {
	local pid
	for pid in $(left_processes); do
		kill -KILL "$pid" 2>/dev/null
	done
}

# shellcheck disable=SC2317,SC2329
interrupted() {
	# The shell would report the end that it brings about here.
	exec 2>/dev/null
	kill_all
	wait
	rm -rf "$TMPDIR" "$TMPDIR.before" "$TMPDIR.after"
	exit 130
}

# What a sanitizer found first, or else the last words.
excerpt() {
	awk '/runtime error: |(ERROR|WARNING): [A-Za-z]*Sanit/ { found = 1 }
		found && ++n <= 25 { print }
		{ last[NR % 25] = $0 }
		END {
			for (i = NR - 24; !found && i <= NR; i++)
				if (i > 0)
					print last[i % 25]
		}' "$log" | cut -c 1-300 | sed 's/^/     | /'
	echo "     | log: $log"
}

verdict() {
	local line
	printf -v line '%-5s%-48s%7s s' "$1" "$name" "$took"
	[ -z "${2:-}" ] || line="$line  $2"
	[ "$1" != FAIL ] || line=$line$'\n'$(excerpt)
	echo "$1" >>"$RESULTS/verdicts"
	printf '%s\n' "$line"
}

shm_entries >"$TMPDIR.before"
private=
# shellcheck disable=SC2016
in_private='mount -t tmpfs tmpfs /dev/shm || exit 1
	after=$1
	shift
	"$@"
	status=$?
	find /dev/shm -mindepth 1 >"$after"
	exit $status'
if unshare -m sh -c "$in_private" sh /dev/null true 2>/dev/null; then
	private=yes
	set -- unshare -m sh -c "$in_private" sh "$TMPDIR.after" "$@"
fi
began=$(date +%s%N)
session=0
trap interrupted INT TERM HUP
TEST_MARK=$mark setsid -w timeout -k 5 "$seconds" "$@" </dev/null \
	>"$log" 2>&1 &
session=$!
wait "$session" 2>/dev/null
status=$?
took=$((($(date +%s%N) - began) / 100000000))
took=$((took / 10)).$((took % 10))

# A launcher's helpers may need a moment to see that their parent has ended,
# and what somebody else has in /dev/shm comes and goes.
for ((i = 0; i < ${PATIENCE:-12}; i++)); do
	left=$(left_processes)
	files=$(left_shm)
	[ -n "$left$files" ] || break
	sleep 0.2
done
complaint=
if [ -n "$left" ]; then
	complaint="left processes behind:"
	for pid in $left; do
		complaint="$complaint $pid $(cat "/proc/$pid/comm" 2>/dev/null)"
	done
	kill_all
elif [ -n "$files" ]; then
	complaint="left behind: ${files//$'\n'/ }"
elif files=$(ls -A "$TMPDIR") && [ -n "$files" ]; then
	complaint="left in TMPDIR: ${files//$'\n'/ }"
fi
rm -rf "$TMPDIR" "$TMPDIR.before" "$TMPDIR.after"

case $status in
0) ;;
77) ;;
124) complaint="timed out after $seconds s" ;;
137)
	complaint="killed by signal 9"
	[ "${took%.*}" -lt "$seconds" ] ||
		complaint="timed out after $seconds s"
	;;
12[89] | 1[3-9][0-9]) complaint="killed by signal $((status - 128))" ;;
*) complaint="exit status $status" ;;
esac
if [ -n "$complaint" ]; then
	verdict FAIL "$complaint"
elif [ "$status" = 77 ]; then
	verdict SKIP "$(grep -v '^[[:space:]]*$' "$log" | tail -n 1 |
		cut -c 1-200)"
else
	verdict PASS
fi
