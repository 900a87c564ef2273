#!/bin/bash
# SPDX-License-Identifier: MIT
#
# two.sh [-v] BUILD [CASE...]: two virtual machines joined by a network, with
# ranks on both.  Prints a line for each case (see two.c): PASS or FAIL.
# Exits with 77 where there is no machine to be had.
#
# To try other things: TWO_RANKS_A is how many of the four ranks are on the
# first machine, TWO_ENV="WREATH_CONNECT=cm" has settings of the ranks.
set -u
cd "$(dirname "$0")/../.." || exit
verbose=
[ "${1:-}" != -v ] || {
	verbose=yes
	shift
}
build=${1:-build}
shift $(($# ? 1 : 0))
[ $# -gt 0 ] || set -- perf none loss_0.1 loss_1 loss_5 delay reorder duplicate \
	corrupt silent_3s down_3s silent down
on_a=${TWO_RANKS_A:-2}
all=4
limit=${TWO_SECONDS:-240}
out=build/vm/two
mkdir -p "$out"

# start NAME FIRST N CASE...
start() {
	local name=$1 first=$2 n=$3
	shift 3
	exec timeout -k 5 $((limit + 10)) test/vm/vm.sh -n "$name" "${net[@]}" \
		-p 1 -m 1024 -t "$limit" \
		"${TWO_ENV:-} test/vm/t_two.sh $build $first $n $all $*"
}

# What a machine without a network cannot tell the other: every rank has
# failed, and the network may come back.
conduct() {
	local case n
	while sleep 0.2; do
		for case in silent down; do
			[ -e "build/vm/b/heal.$case" ] && continue
			n=$(find build/vm/a build/vm/b -name "failed.$case.*" |
				wc -l)
			[ "$n" -lt "$all" ] ||
				touch "build/vm/a/heal.$case" \
					"build/vm/b/heal.$case"
		done
	done
}

rm -f build/vm/[ab]/failed.* build/vm/[ab]/heal.*
for try in 1 2 3; do
	port=$((20000 + RANDOM % 12000))
	net=(-l "$port")
	start a 0 "$on_a" "$@" >"$out/a" 2>&1 &
	a=$!
	sleep 0.5
	net=(-c "$port")
	start b "$on_a" $((all - on_a)) "$@" >"$out/b" 2>&1 &
	b=$!
	sleep 2
	grep -qi 'address already in use\|connection refused' \
		build/vm/[ab]/console "$out/a" "$out/b" || break
	kill "$a" "$b"
	wait
	[ $try -lt 3 ] || echo "no free port found"
done
conduct &
conductor=$!
trap 'kill $a $b $conductor 2>/dev/null; wait; exit 130' INT TERM HUP
wait "$a"
status_a=$?
wait "$b"
status_b=$?
kill "$conductor"
[ "$status_a" != 77 ] || {
	cat "$out/a"
	exit 77
}
failed=0
for case in "$@"; do
	lines=$(grep -h "^@ $case " "$out/a" "$out/b")
	seconds=$(awk '{ if ($5 > m) m = $5 } END { print m + 0 }' <<<"$lines")
	if [ "$(grep -c "^@ $case [0-9]* PASS" <<<"$lines")" = "$all" ]; then
		echo "PASS two/$case ($seconds s)"
	else
		echo "FAIL two/$case ($seconds s)"
		grep -v " PASS " <<<"$lines" | cut -c 1-1500
		failed=1
	fi
done
if [ "$status_a$status_b" != 00 ] || [ $failed != 0 ] || [ -n "$verbose" ]; then
	echo "machine a ended with $status_a, b with $status_b"
	grep -hv '^@' "$out/a" "$out/b"
fi
[ "$status_a$status_b$failed" = 000 ]
