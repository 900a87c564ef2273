#!/bin/bash
# SPDX-License-Identifier: MIT
# What the tests of the command share: source it.  Sets $wreath, $dir (removed
# at the end) and $failed.
set -u
wreath=${WREATH:-build/wreath}
[ -x "$wreath" ] || { echo "there is no $wreath"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# shellcheck disable=SC2034
failed=0

complain() {
	echo "$*"
	# shellcheck disable=SC2034
	failed=1
}

# run COMMAND...: its output is in $dir/out and $dir/err, its status in $status.
run() {
	ran=$*
	timeout -k 5 60 "$@" >"$dir/out" 2>"$dir/err"
	status=$?
}

# expect STATUS COMMAND...
expect() {
	local want=$1
	shift
	run "$@"
	[ "$status" = "$want" ] && return
	complain "status $status, not $want: $ran"
	tail -n 5 "$dir/out" "$dir/err"
}

# shows FILE PATTERN: the last command's out or err has such a line.
shows() {
	grep -qE -e "$2" "$dir/$1" && return
	complain "std$1 does not show '$2': $ran"
	head -n 20 "$dir/$1"
}

# hides FILE PATTERN: and this one it has not.
hides() {
	grep -qE -e "$2" "$dir/$1" || return 0
	complain "std$1 shows '$2': $ran"
	head -n 20 "$dir/$1"
}

# json FILE EXPRESSION: a fact about the document, in Python's words; x is it.
json() {
	command -v python3 >/dev/null || return 0
	python3 -c 'import json, sys
x = json.load(open(sys.argv[1]))
sys.exit(not eval("(" + sys.argv[2] + ")"))' "$1" "$2" 2>"$dir/python" && return
	complain "not so in the JSON: $2: $ran"
	tail -n 1 "$dir/python"
	head -c 300 "$1"
}

# within SECONDS COMMAND...: until it succeeds.
within() {
	local end=$((SECONDS + $1 + 1))
	shift
	until "$@" 2>/dev/null; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}
