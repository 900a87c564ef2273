#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: `wreath run` starts ranks, carries their output in whole lines, and
# ends them all, with a status and a text that say who failed and how.
# Method: small shell programs as ranks; what is left is looked for by a mark
# in the environment of whatever a rank has started.
# shellcheck source=test/cli/expect.sh
. "$(dirname "$0")/expect.sh"

export RUN_MARK=$$.$RANDOM

# The one that looks must not find itself; a zombie has no environment.
# shellcheck disable=SC2317
nothing_is_left() {
	! env -u RUN_MARK grep -qsa "RUN_MARK=$RUN_MARK" /proc/[0-9]*/environ
}

leaves_nothing() {
	within 3 nothing_is_left || complain "processes are left: $ran"
}

ranks_see_their_place() {
	# shellcheck disable=SC2016
	expect 0 "$wreath" run -n 3 sh -c \
		'echo $WREATH_RANK of $WREATH_N_RANKS ${#WREATH_COMM_ID}'
	for rank in 0 1 2; do
		shows out "^\\[$rank\\] $rank of 3 256$"
	done
}

lines_stay_whole() {
	# A line in two halves, lines without end, many at once, and both ways.
	# shellcheck disable=SC2016
	expect 0 "$wreath" run -n 4 sh -c 'printf "a$WREATH_RANK"; sleep 0.2
		echo b; echo e$WREATH_RANK >&2
		i=0; while [ $i -lt 200 ]; do echo line $i x; i=$((i+1)); done
		printf tail'
	for rank in 0 1 2 3; do
		shows out "^\\[$rank\\] a${rank}b\$"
		shows out "^\\[$rank\\] tail\$"
		shows err "^\\[$rank\\] e$rank\$"
		hides out "e$rank"
	done
	[ "$(grep -cE '^\[[0-3]\] line [0-9]+ x$' "$dir/out")" = 800 ] ||
		complain "lines are missing or broken: $ran"
	[ "$(wc -l <"$dir/out")" = 808 ] || complain "not 808 lines: $ran"

	expect 0 "$wreath" run -n 1 sh -c \
		'head -c 100000 /dev/zero | tr "\0" y'
	[ "$(tr -dc y <"$dir/out" | wc -c)" = 100000 ] ||
		complain "a long line lost something"
	expect 0 "$wreath" run -n 2 --no-prefix echo x
	[ "$(cat "$dir/out")" = $'x\nx' ] || complain "--no-prefix: $ran"
	echo in >"$dir/in"
	"$wreath" run -n 2 cat <"$dir/in" >"$dir/out"
	[ "$(cat "$dir/out")" = '[0] in' ] ||
		complain "standard input is not rank 0's"
}

failures_are_told() {
	# shellcheck disable=SC2016
	expect 5 "$wreath" run -n 3 sh -c \
		'[ $WREATH_RANK != 1 ] || { echo last words >&2; exit 5; }
		sleep 50'
	shows err '^wreath run: rank 1 \(pid [0-9]+\) exited with code 5; e'
	shows err '^\[1\] last words$'
	leaves_nothing
	# shellcheck disable=SC2016
	expect 139 "$wreath" run -n 2 sh -c \
		'[ $WREATH_RANK = 0 ] || kill -SEGV $$; sleep 50'
	shows err 'rank 1 \(pid [0-9]+\) was ended by SIGSEGV'
	leaves_nothing
	# Those that do not hear SIGTERM, and what they started.
	# shellcheck disable=SC2016
	expect 3 "$wreath" run -n 2 sh -c \
		'[ $WREATH_RANK = 1 ] || exit 3
		trap "" TERM; sleep 50 & sleep 50; sleep 50'
	leaves_nothing
	expect 127 "$wreath" run -n 3 /nowhere/program
	shows err 'cannot run /nowhere/program: No such file'
	expect 126 "$wreath" run -n 3 "$dir"
	expect 124 "$wreath" run -n 2 --timeout 0.3 sleep 50
	shows err '0.3 s are over'
	leaves_nothing
	expect 6 "$wreath" run true
	shows err '-n N is missing'
	expect 6 "$wreath" run -n 2
	shows err 'no program'
	# What a rank leaves running does not hold the launcher.
	expect 0 "$wreath" run -n 2 sh -c 'sleep 50 &'
	leaves_nothing
	"$wreath" run -n 2 yes 2>"$dir/err" | head -n 1 >"$dir/out"
	[ "${PIPESTATUS[0]}" = 141 ] || complain "a closed output: no SIGPIPE"
	leaves_nothing
}

# start COMMAND...: in the background, as $launcher, up to its "ready".  What
# a shell starts so ignores SIGINT, unless told otherwise.
start() {
	ran=$*
	rm -f "$dir/out"
	env --default-signal=INT "$@" >"$dir/out" 2>"$dir/err" &
	launcher=$!
	within 10 grep -q ready "$dir/out" || complain "not ready: $ran"
}

signals_are_passed_on() {
	local name
	for name in USR1 USR2 HUP INT TERM; do
		start "$wreath" run -n 1 sh -c \
			"trap 'echo got $name; exit 0' $name; echo ready
			while :; do sleep 0.05; done"
		kill -s $name $launcher
		wait $launcher
		status=$?
		[ $status = 0 ] || complain "SIG$name: status $status"
		shows out "^\\[0\\] got $name\$"
	done
	start "$wreath" run -n 2 sh -c 'echo ready; sleep 50'
	kill -s INT $launcher
	wait $launcher
	status=$?
	[ $status = 130 ] || complain "after SIGINT: status $status"
	start "$wreath" run -n 2 sh -c \
		'trap "" INT; echo ready; sleep 50; sleep 50'
	kill -s INT $launcher
	sleep 0.2
	kill -s INT $launcher
	wait $launcher
	status=$?
	[ $status = 130 ] || complain "after two SIGINT: status $status"
	leaves_nothing
}

nothing_survives_the_launcher() {
	start "$wreath" run -n 3 sh -c \
		'sleep 50 & (sleep 50 & sleep 50) & echo ready; sleep 50'
	{ kill -s KILL $launcher; wait $launcher; } 2>/dev/null
	leaves_nothing
}

many_ranks_start() {
	expect 0 "$wreath" run -n 100 echo x
	[ "$(grep -cE '^\[[0-9]+\] x$' "$dir/out")" = 100 ] ||
		complain "not 100 ranks: $ran"
}

ranks_see_their_place
lines_stay_whole
failures_are_told
signals_are_passed_on
nothing_survives_the_launcher
many_ranks_start
exit "$failed"
