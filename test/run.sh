#!/bin/bash
# SPDX-License-Identifier: MIT
#
# run.sh test|check|rxe: the fast tests, all of them, or those on RDMA devices.
# Called by make, which passes B, SAN, CC, CXX and MAKE in the environment.  A
# build is a test like others.
#
# A test is a file: test/unit/t_*.c (one room), test/loop/t_*.c (ranks, through
# wreath.h), test/cli/t_*.sh (the command, $WREATH, and what was built in
# $BUILD), test/check/c_*.sh (the sources).  A name that ends in _long is left
# out of `make test`.  TEST_UNDER tells a test what slows it down: "valgrind",
# "address,undefined", "thread", or "".
set -u
what=$1
# The variables of make's command line go on to the makes below, its flags and
# its jobs do not.
case ${MAKEFLAGS:-} in
*" -- "*) MAKEFLAGS=" -- ${MAKEFLAGS#* -- }" ;;
*) MAKEFLAGS= ;;
esac
export MAKEFLAGS
unset MFLAGS MAKELEVEL GNUMAKEFLAGS
# Tests begin from the defaults, wherever they are started.
for name in $(compgen -e); do
	case $name in
	WREATH* | NCCL_* | PMI_* | PMIX_* | OMPI_* | SLURM_* | RANK | \
		WORLD_SIZE | LOCAL_RANK | MASTER_ADDR | MASTER_PORT)
		unset "$name" ;;
	esac
done
export B SAN CC CXX MAKE LC_ALL=C TEST_UNDER=$SAN
export RESULTS=$PWD/$B/results
export ASAN_OPTIONS=detect_stack_use_after_return=1:print_legend=0
export UBSAN_OPTIONS=print_stacktrace=1
# Relative to the top, where the runner is.
TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
export TSAN_OPTIONS=$TSAN_OPTIONS:suppressions=$PWD/test/thread.supp
rm -rf "$RESULTS"
mkdir -p "$RESULTS"
: >"$RESULTS/verdicts"
ulimit -c 0
cores=$(nproc)
lanes=1
running=0
suffix=
limit=120

trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM HUP

drain() {
	wait
	running=0
}

# try NAME SECONDS COMMAND...: run it as a test, $lanes at a time.
try() {
	while [ "$running" -ge "$lanes" ]; do
		wait -n
		running=$((running - 1))
	done
	test/one.sh "$@" &
	running=$((running + 1))
	[ "$lanes" -gt 1 ] || drain
}

# build NAME VARIABLE=VALUE... TARGET...: as much as can be built.
build() {
	local name=$1
	shift
	try "$name" 900 "$MAKE" -s -k -j"$cores" --no-print-directory "$@"
}

# The files of a kind that this run is for, without their ends.
sources() {
	local file
	for file in "$@"; do
		case $file in
		*\**) ;;
		*_long.*) [ "$what" = test ] || echo "${file%.*}" ;;
		*) echo "${file%.*}" ;;
		esac
	done
}

# unit|loop FOLDER [PREFIX COMMAND...]: the test programs of one variant.
# Unit tests run two at a time; ranks spin, so the others run alone.
unit() {
	local folder=$1 name
	shift
	lanes=$((cores < 2 ? 1 : 2))
	for name in $(sources test/unit/t_*.c); do
		try "${name#test/}$suffix" "$limit" "$@" "$folder/$name"
	done
	drain
	lanes=1
}

loop() {
	local folder=$1 name
	shift
	for name in $(sources test/loop/t_*.c); do
		# The long form is the same and more.
		[ "$what" = test ] || ! grep -q "include.*${name##*/}\.c" \
			"${name}_long.c" 2>/dev/null || continue
		try "${name#test/}$suffix" "$limit" "$@" "$folder/$name"
	done
}

command_line() {
	local name
	export WREATH=$PWD/$1/wreath BUILD=$PWD/$1
	for name in $(sources test/cli/t_*.sh); do
		try "${name#test/}$suffix" "$limit" "$name.sh"
	done
	unset WREATH BUILD
}

static() {
	local name
	lanes=$((cores < 2 ? 1 : 2))
	for name in $(sources test/check/c_*.sh); do
		try "check/${name#test/check/c_}" 300 "$name.sh"
	done
	drain
	lanes=1
}

variant() {
	local folder=build-${1//,/-}
	local -a runner=()

	suffix=" [$1]"
	limit=300
	# The thread sanitizer's shadow cannot live with a wide random layout.
	[ "$1" != thread ] || ! setarch -R true 2>/dev/null ||
		runner=(setarch -R)
	build "build$suffix" WERROR=1 SAN="$1" bins
	export TEST_UNDER=$1
	unit "$folder" "${runner[@]}"
	loop "$folder" "${runner[@]}"
	export TEST_UNDER=$SAN
	suffix=
	limit=120
}

# Ranks again, the short forms, with their buffers in memory of simulated GPUs.
on_gpus() {
	local what=test

	export RANKS_GPU=1
	suffix=" [gpus]"
	loop "$B"
	RANKS_GPU=mix
	suffix=" [gpus and hosts]"
	loop "$B"
	unset RANKS_GPU
	suffix=
}

other_compiler() {
	local other=$1
	if command -v "$other" >/dev/null; then
		build "build [$other]" WERROR=1 CC="$other" bins
	else
		try "build [$other]" 10 sh -c "echo no $other; exit 77"
	fi
}

under_valgrind() {
	suffix=" [valgrind]"
	limit=300
	if command -v valgrind >/dev/null; then
		TEST_UNDER=valgrind unit "$B" test/valgrind.sh
	else
		try "unit$suffix" 10 sh -c 'echo no valgrind; exit 77'
	fi
	suffix=
	limit=120
}

# several NAME SECONDS COMMAND...: a command that runs tests of its own and
# prints a line for each; its lines are taken over as verdicts.
several() {
	local name=$1 seconds=$2 log=$RESULTS/$1.log status
	shift 2
	# Not in the foreground, where a signal would wait for its end.
	set -o pipefail
	timeout -k 5 "$seconds" "$@" </dev/null 2>&1 | tee "$log" &
	wait $!
	status=$?
	set +o pipefail
	grep -oE '^(PASS|FAIL|SKIP)' "$log" >>"$RESULTS/verdicts"
	[ "$status" != 0 ] || return
	grep -q '^FAIL' "$log" && return
	if [ "$status" = 77 ]; then
		echo SKIP >>"$RESULTS/verdicts"
		echo "SKIP $name"
	else
		echo FAIL >>"$RESULTS/verdicts"
		echo "FAIL $name: exit status $status"
	fi
}

# The library on real verbs: devices of this host, then soft-RoCE, in one
# virtual machine and in two.
rxe() {
	local port device command
	for port in /sys/class/infiniband/*/ports/*/state; do
		grep -qs ACTIVE "$port" || continue
		device=${port#/sys/class/infiniband/}
		several "${device%%/*}" 600 \
			env RESULTS="$RESULTS/device" \
			test/vm/suite.sh "$B" "${device%%/*}"
	done
	# shellcheck disable=SC2016
	command='export RESULTS=$VM_OUT/results; mkdir -p $RESULTS; status=0'
	command="$command; test/vm/suite.sh $B rxe0 || status=1"
	command="$command; test/vm/rails.sh $B || status=1; unset RESULTS"
	command="$command; test/vm/t_cm.sh $B || status=1"
	command="$command; B=$B test/vm/t_gids.sh || status=1; exit \$status"
	several vm 600 test/vm/vm.sh -t 590 "$command"
	several two 300 test/vm/two.sh "$B"
	several ways 250 test/vm/ways.sh "$B"
}

# Files that git neither keeps nor ignores.
strangers() {
	git ls-files --others --exclude-standard 2>/dev/null | sort
}

summary() {
	awk '{ n[$1]++ }
		END {
			printf "%d passed, %d failed, %d skipped\n", n["PASS"],
				n["FAIL"], n["SKIP"]
			exit n["FAIL"] > 0 || NR == 0
		}' "$RESULTS/verdicts"
}

strangers >"$RESULTS/strangers"
build build WERROR=1 bins
if [ "$what" = rxe ]; then
	rxe
	summary
	exit
fi
static
unit "$B"
loop "$B"
command_line "$B"
if [ "$what" = check ] && [ -z "$SAN" ]; then
	on_gpus
	other_compiler clang
	under_valgrind
	variant address,undefined
	variant thread
	rxe
	if [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]; then
		several gpu 1300 test/gpu/run.sh "$B"
	else
		try gpu 10 test/gpu/run.sh "$B"
	fi
	try conformance 550 test/dropin/conformance.sh "$B"
	export -f strangers
	# shellcheck disable=SC2016
	try tree 20 bash -c 'strangers | diff "$RESULTS/strangers" -'
fi

summary
