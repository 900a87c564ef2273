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
[ $# -gt 0 ] || set -- perf none loss_0.1 loss_1 loss_5 delay reorder \
	duplicate corrupt silent_3s down_3s flaps silent down tree \
	split-ring halving uneven uneven_split-ring uneven_down_3s
on_a=${TWO_RANKS_A:-2}
all=4
limit=${TWO_SECONDS:-240}
out=build/vm/two
mkdir -p "$out"

# The ranks are shared out once more for the cases that say so: three and one.
even=
uneven=
for case in "$@"; do
	case $case in
	uneven*) uneven="$uneven $case" ;;
	*) even="$even $case" ;;
	esac
done

# start NAME RANKS RANKS: its first and number of ranks, for both kinds.
start() {
	local name=$1 work="${TWO_ENV:-} test/vm/t_two.sh $build"
	local command="status=0"

	[ -z "$even" ] || command="$command; $work $2 $all$even || status=1"
	[ -z "$uneven" ] || command="$command; $work $3 $all$uneven || status=1"
	exec timeout -k 5 $((limit + 10)) test/vm/vm.sh -n "$name" "${net[@]}" \
		-p 1 -m 1024 -t "$limit" "$command; exit \$status"
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

a=
b=
conductor=
# shellcheck disable=SC2086
trap 'kill $a $b $conductor 2>/dev/null; wait; exit 130' INT TERM HUP
rm -f build/vm/[ab]/failed.* build/vm/[ab]/heal.*
for try in 1 2 3; do
	port=$((20000 + RANDOM % 12000))
	net=(-l "$port")
	start a "0 $on_a" "0 3" >"$out/a" 2>&1 &
	a=$!
	# Seen, not tried: the machine takes one caller only.
	for ((i = 0; i < 100; i++)); do
		sleep 0.1
		grep -q ":$(printf %04X "$port") .* 0A " /proc/net/tcp && break
		kill -0 "$a" 2>/dev/null || break
	done
	net=(-c "$port")
	start b "$on_a $((all - on_a))" "3 1" >"$out/b" 2>&1 &
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
