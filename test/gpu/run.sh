#!/bin/bash
# SPDX-License-Identifier: MIT
#
# run.sh BUILD: what can only be seen on a machine with an NVIDIA GPU, in less
# than six minutes; everything in it is bounded.  Prints a line for each step,
# as test/run.sh does, and in the end a summary of the figures.  Exit status 77
# where there is no GPU.
#
# GPU=simulated runs it on the simulated driver, for those who work on it: the
# figures mean nothing then, and are not judged.
#
# One GPU is enough, which all ranks share: CUDA_VISIBLE_DEVICES chooses it.
set -u
B=${1:?a build folder}
GPU=${GPU:-real}
RESULTS=${RESULTS:-$PWD/$B/results}/gpu
export RESULTS PATIENCE=${PATIENCE:-12}
mkdir -p "$RESULTS"
: >"$RESULTS/verdicts"
: >"$RESULTS/figures"
began=$SECONDS
# What is left of the six minutes is what a step may take at most.
total=350
cores=$(nproc)

trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM HUP

skip() {
	echo "$*"
	exit 77
}

# step NAME SECONDS COMMAND...: a test, of which left-overs are a failure.  One
# that could not end in what is left of the time does not begin.
step() {
	local name=gpu/$1 limit=$2 left=$((total - (SECONDS - began)))
	shift 2
	if [ "$limit" -gt "$left" ]; then
		step_is_skipped "${name#gpu/}" "$total s are over"
		return 1
	fi
	test/one.sh "$name" "$limit" "$@" &
	wait $!
	[ "$(tail -n 1 "$RESULTS/verdicts")" = PASS ]
}

step_is_skipped() {
	printf 'SKIP gpu/%s: %s\n' "$1" "$2"
	echo SKIP >>"$RESULTS/verdicts"
}

log() {
	echo "$RESULTS/gpu/$1.log"
}

figure() {
	printf '%s\n' "$*" >>"$RESULTS/figures"
}

# judge WHAT IS LEAST: a figure, which fails where it is less.
judge() {
	local verdict
	verdict=$(awk -v is="$2" -v least="$3" 'BEGIN {
		print (is + 0 >= least + 0 ? "PASS" : "FAIL") }')
	[ "$GPU" = real ] || verdict=SKIP
	figure "$1: $2, at least $3 wanted: ${verdict/SKIP/not judged}"
	printf '%-5s%s: %s, at least %s\n' "$verdict" "gpu/$1" "$2" "$3"
	echo "$verdict" >>"$RESULTS/verdicts"
}

# ---- what there is ----

if [ "$GPU" = simulated ]; then
	export LD_LIBRARY_PATH=$PWD/$B/cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	export FAKE_CUDA=${FAKE_CUDA:-devices=1,late=20us,memory=8G}
	cases=3 largest=256K operand=64K rounds=3
else
	[ -e /dev/nvidiactl ] || [ -e /dev/dxg ] ||
		skip "no NVIDIA GPU: there is no /dev/nvidiactl"
	export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}
	cases=12 largest=256M operand=256M rounds=9
fi

build() {
	# The compilers' own time does not count: most of it is nvcc's.
	echo "... building"
	RESULTS=$RESULTS test/one.sh gpu/build 900 "${MAKE:-make}" -s -k \
		-j"$cores" --no-print-directory all gpu loop nccl-test \
		"$B/test/unit/t_reduce_device"
	began=$SECONDS
	[ "$(tail -n 1 "$RESULTS/verdicts")" = PASS ]
}

there_is_one() {
	timeout 60 "$B/wreath" perf all_reduce -g 1 --memory gpu -b 8 -e 8 \
		-n 1 -q >"$RESULTS/first" 2>&1
	case $? in
	0) figure "$(sed -n 's/^#  Rank  0.* device/GPU/p' "$RESULTS/first")" ;;
	6) skip "$(tail -n 1 "$RESULTS/first")" ;;
	*)
		echo "FAIL gpu: the first call"
		cat "$RESULTS/first"
		exit 1
		;;
	esac
}

# ---- right results ----

# The suite of ranks, on one GPU.
suite() {
	local name
	# Each process of a rank starts CUDA, which takes half a second: first
	# those with few.
	for name in t_stream t_mix t_other_calls t_all_reduce t_groups \
		t_split t_collectives t_messages t_patterns; do
		[ -x "$B/test/loop/$name" ] || continue
		step "loop/$name" 60 env RANKS_GPU=1 \
			RANKS_CUDA=libcuda.so.1 RANKS_ENV=WREATH_HCA=soft0 \
			"$B/test/loop/$name"
	done
}

# Memory that is not ours, and threads of a block that race.
under_sanitizer() {
	local tool=compute-sanitizer
	command -v $tool >/dev/null ||
		tool=/usr/local/cuda/bin/compute-sanitizer
	if [ "$GPU" != real ]; then
		step_is_skipped sanitizer "the GPU is simulated"
	elif ! [ -x "$(command -v $tool)" ]; then
		step_is_skipped sanitizer "compute-sanitizer is not installed"
	else
		# That the driver knows no host pointer is no error of ours.
		step memcheck 40 env CASES=2 FEW=1 $tool --tool memcheck \
			--report-api-errors no --error-exitcode 9 \
			"$B/test/gpu/t_kernels"
		step racecheck 40 env CASES=1 FEW=1 $tool --tool racecheck \
			--error-exitcode 9 "$B/test/gpu/t_kernels"
	fi
}

# Another's program, which knows NCCL.
under_torch() {
	local library=$PWD/$B/libwreath-nccl.so
	local python=${PYTHON:-python3}
	if ! [ -e "$library" ]; then
		step_is_skipped torch "there is no $library"
	elif [ "$GPU" != real ]; then
		step_is_skipped torch "the GPU is simulated"
	elif ! "$python" -c 'import sys, torch
sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
		step_is_skipped torch "no PyTorch with CUDA"
	else
		step torch 60 env LD_PRELOAD="$library" NCCL_DEBUG=INFO \
			"$python" test/gpu/torch_nccl.py
		# It says itself whose library it called.
		sed -n 's/^torch: /torch: /p' "$(log torch)" >>"$RESULTS/figures"
	fi
}

# ---- figures ----

folds() {
	local log
	log=$(log folds)
	step folds 70 "$B/wreath" gpu -b $operand -n $rounds || return
	grep -v '^$' "$log" >>"$RESULTS/figures"
	# The bytes a second of a copy, beside which all is judged.
	copy=$(awk '$1 == "float" && $2 == "gpu" && $3 == 2 {
		gsub(/[()]/, " "); print $8 }' "$log")
	for type in float half bfloat16; do
		judge "fold of two, $type, by a copy's rate" "$(
			awk -v type=$type '$1 == type && $2 == "gpu" &&
				$3 == 2 { print $NF }' "$log")" 0.85
	done
}

# An all-reduce of two reads both inputs and writes both outputs: 4 times the
# vector, by which a GPU that both share is to be compared with its copies.
two_ranks() {
	local log
	log=$(log perf)
	step perf 90 "$B/wreath" perf all_reduce -g 2 --memory gpu -b 8 \
		-e $largest -f 4 -q || return
	grep -v '^$' "$log" >>"$RESULTS/figures"
	[ -n "${copy:-}" ] || return
	judge "all-reduce of two ranks on one GPU, by a copy's rate" "$(
		awk -v copy="$copy" '$1 ~ /^[0-9]+$/ { bytes = $1; us = $6 }
			END { printf "%.3f", 4 * bytes / us / 1e3 / copy }
		' "$log")" 0.5
}

build || exit 1
there_is_one
step kernels 60 env CASES=$cases "$B/test/gpu/t_kernels"
if [ "$GPU" = real ]; then
	step device 60 "$B/test/unit/t_reduce_device"
else
	step_is_skipped device "it judges speed"
fi
step order 60 "$B/test/gpu/t_order"
grep -hs '^rank .: a call' "$(log order)" >>"$RESULTS/figures"
folds
two_ranks
step collectives 60 test/gpu/collectives.sh "$B"
step nccl 40 env \
	LD_LIBRARY_PATH="$PWD/$B/nccl${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
	"$B/test/nccl/own/gpu"
under_torch
under_sanitizer
suite

echo
echo "---- for the record: $(uname -n), $(date -u +%Y-%m-%d)"
[ "$GPU" = real ] || echo "---- SIMULATED: these figures mean nothing"
cat "$RESULTS/figures"
echo "---- $((SECONDS - began)) s beside the build"
awk '{ n[$1]++ }
	END {
		printf "gpu: %d passed, %d failed, %d skipped\n", n["PASS"],
			n["FAIL"], n["SKIP"]
		exit n["FAIL"] > 0
	}' "$RESULTS/verdicts"
