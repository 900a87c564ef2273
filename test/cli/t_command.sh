#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: whoever mistypes is told what was meant, and help is always at hand.
# Method: wrong words to every subcommand; each text of help lists each option
# that the subcommand takes.
# shellcheck source=test/cli/expect.sh
. "$(dirname "$0")/expect.sh"

expect 6 "$wreath"
shows err 'usage: wreath COMMAND'
for ask in help --help -h; do
	expect 0 "$wreath" $ask
	for command in run perf info schedule sim plan version help; do
		shows out "^  $command "
	done
done
for ask in version --version; do
	expect 0 "$wreath" $ask
	shows out '^wreath [0-9]+\.[0-9]+\.[0-9]+$'
done
for command in run perf info schedule sim plan; do
	expect 0 "$wreath" help $command
	shows out "^usage: wreath $command"
	shows out '^  -h, --help'
	cp "$dir/out" "$dir/help"
	expect 0 "$wreath" $command --help
	cmp -s "$dir/out" "$dir/help" ||
		complain "help $command and $command --help differ"
done
expect 0 "$wreath" help version

expect 6 "$wreath" prf
shows err "unknown command 'prf'; did you mean perf\\?"
expect 6 "$wreath" help shedule
shows err 'did you mean schedule'
expect 6 "$wreath" xyzzy
hides err 'did you mean'
expect 6 "$wreath" run --rnaks 3 true
shows err 'unknown option --rnaks; did you mean --ranks\?'
expect 6 "$wreath" perf all_reduce --itres 3
shows err 'did you mean --iters'
expect 6 "$wreath" perf all_redcue
shows err "collective 'all_redcue' is not one of: all_reduce"
expect 6 "$wreath" perf
shows err 'which collective'
expect 6 "$wreath" info x
expect 6 "$wreath" info --jsn
shows err 'did you mean --json'

# Every refusal names the option, the value and what would do.
refuses() {
	local pattern=$1
	shift
	expect 6 "$wreath" perf all_reduce "$@"
	shows err "$pattern"
	[ ! -s "$dir/out" ] || complain "output before a refusal: $ran"
}
refuses "datatype 'flaot' is not one of: .*did you mean float" -d flaot
refuses "op 'som' is not one of: sum" -o som
refuses "algo 'tre' is not one of: auto ring" --algo tre
refuses "ngpus '0' is not a whole number from 1 to" -g 0
refuses "ngpus '3x' is not" -g 3x
refuses "minbytes '-8' is not a size" -b -8
refuses "minbytes '8Q' is not a size" -b 8Q
refuses "stepfactor '1' is not" -f 1
refuses "stepfactor '1.5' is not" -f 1.5
refuses "cudagraph '1': it can only be 0" -G 1
refuses 'minbytes 16 is more than --maxbytes 8' -b 16 -e 8
refuses 'give --stepbytes' -b 0 -e 8
refuses 'do not fit this machine' -b 64T -e 64T
refuses 'needs a value' -b
refuses 'takes no value' --touch=1
refuses 'unknown option -k' -k
refuses "sizes '8x' is not a size" --sizes 8,8x
refuses 'only one of --json and --csv' --json - --csv -
refuses 'cannot write /nowhere/x' --json /nowhere/x
export WREATH_ALGO=rnig
refuses "WREATH_ALGO='rnig' is not one of" -g 1
unset WREATH_ALGO

exit "$failed"
