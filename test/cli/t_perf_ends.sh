#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: however a measurement ends, it ends soon, says why, shows what is done,
# and leaves nothing behind.
# Method: a sweep without end is interrupted, loses a rank, loses its parent.
# shellcheck source=test/cli/expect.sh
. "$(dirname "$0")/expect.sh"

# begin OPTIONS...: in the background, as $parent, up to its first row.
begin() {
	ran="perf $*"
	rm -f "$dir/out"
	env --default-signal=INT "$wreath" perf all_reduce -g 3 -b 8 -e 512 \
		-f 8 -N 0 --seconds 0.02 "$@" >"$dir/out" 2>"$dir/err" &
	parent=$!
	within 20 grep -q '^ .* 512 ' "$dir/out" || complain "no row: $ran"
	mapfile -t pids < <(sed -n \
		's/^#  Rank .* Pid *\([0-9]*\) on.*/\1/p' "$dir/out")
	[ "${#pids[@]}" = 3 ] || complain "not three ranks: $ran"
}

# shellcheck disable=SC2317
gone() {
	local pid
	for pid in "${pids[@]}"; do
		! kill -0 "$pid" 2>/dev/null || return 1
	done
}

# ends SECONDS: sets $status, of the parent.
ends() {
	local began=$SECONDS
	{ wait $parent; } 2>/dev/null
	status=$?
	[ $((SECONDS - began)) -le $(($1 + 1)) ] ||
		complain "took $((SECONDS - began)) s to end: $ran"
	within 2 gone || complain "ranks are left: $ran"
}

interrupts_show_what_is_done() {
	local name
	for name in INT TERM HUP; do
		begin --json "$dir/json"
		kill -s $name $parent
		ends 4
		[ $status = 130 ] || complain "SIG$name: status $status"
		shows out '^# Interrupted$'
		shows out '^# Out of bounds values : 0 OK$'
		json "$dir/json" 'x["interrupted"] and len(x["results"]) >= 5'
	done
	# Through a launcher, which passes it on.
	rm -f "$dir/out"
	env --default-signal=INT "$wreath" run --no-prefix -n 2 "$wreath" \
		perf all_reduce -b 8 -e 8 -N 0 --seconds 0.02 \
		--json "$dir/json" >"$dir/out" 2>"$dir/err" &
	parent=$!
	ran="perf under run"
	within 20 grep -q '^ .* 8 ' "$dir/out" || complain "no row: $ran"
	kill -s INT $parent
	pids=()
	ends 4
	[ $status = 130 ] || complain "under run: status $status"
	json "$dir/json" 'x["interrupted"] and len(x["results"]) >= 1'
}

a_killed_rank_ends_it() {
	local rank
	for rank in 0 2; do
		begin --json "$dir/json"
		kill -s KILL "${pids[$rank]}"
		ends 6
		case $status in
		0 | 7) complain "status $status after a rank's death" ;;
		esac
		shows err "^wreath perf: rank $rank \\(pid ${pids[$rank]}\\) \
was ended by SIGKILL\$"
		[ "$(grep -c '^wreath perf: rank' "$dir/err")" -le 2 ] ||
			complain "said more than once: $(cat "$dir/err")"
		json "$dir/json" '"SIGKILL" in x["error"]'
	done
}

nothing_survives_the_parent() {
	begin
	{ kill -s KILL $parent; wait $parent; } 2>/dev/null
	within 3 gone || complain "ranks outlive their parent"
}

errors_are_the_librarys() {
	WREATH_SOFT=nonsense expect 3 "$wreath" perf all_reduce -g 2 -b 8 -e 8
	shows err '^wreath perf: rank [01]: WREATH_E[A-Z]+: '
	[ "$(grep -c '^wreath perf: rank' "$dir/err")" = 1 ] ||
		complain "said more than once: $(cat "$dir/err")"
	expect 3 env WREATH_SOFT=nonsense "$wreath" perf all_reduce -g 2 \
		-b 8 -e 8 --json -
	json "$dir/out" 'x["error"] and x["results"] == []'
}

interrupts_show_what_is_done
a_killed_rank_ends_it
nothing_survives_the_parent
errors_are_the_librarys
exit "$failed"
