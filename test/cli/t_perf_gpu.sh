#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: `wreath perf` measures on memory of GPUs what it measures on the
# host's, with every element checked, and says so; `wreath gpu` measures a GPU
# alone; and where there is none, one sentence says why.
# Method: short runs on the simulated driver, whose figures mean nothing.
# shellcheck source=test/cli/expect.sh
. "$(dirname "$0")/expect.sh"
simulated=$(dirname "$(readlink -f "$wreath")")/cuda
[ -e "$simulated/libcuda.so.1" ] || { echo "no simulated CUDA"; exit 77; }
export FAKE_CUDA=devices=2,late=50us,memory=256M

# perf STATUS COLLECTIVE OPTIONS...
perf() {
	local want=$1
	shift
	expect "$want" env LD_LIBRARY_PATH="$simulated" "$wreath" perf "$@" \
		--seconds 0.002 -n 2 -w 1 -q
}

gpu() {
	local want=$1
	shift
	expect "$want" env LD_LIBRARY_PATH="$simulated" "$wreath" gpu "$@"
}

is_right() {
	shows out '^# Out of bounds values : 0 OK$'
}

without_cuda_one_sentence_says_why() {
	for command in "perf all_reduce --memory gpu" \
		"perf barrier -M managed" gpu; do
		# shellcheck disable=SC2086
		expect 6 env WREATH_GPU=off LD_LIBRARY_PATH="$simulated" \
			"$wreath" $command
		shows err '^wreath (perf|gpu): .*WREATH_GPU'
		[ "$(wc -l <"$dir/err")" = 1 ] ||
			complain "not one line: $(cat "$dir/err")"
		[ ! -s "$dir/out" ] || complain "a table: $(cat "$dir/out")"
		# On a machine without a driver, as most are.
		LD_LIBRARY_PATH='' ldconfig -p 2>/dev/null |
			grep -q libcuda.so.1 && continue
		# shellcheck disable=SC2086
		expect 6 env LD_LIBRARY_PATH='' "$wreath" $command
		[ "$(wc -l <"$dir/err")" = 1 ] ||
			complain "not one line: $(cat "$dir/err")"
	done
}

the_table_names_the_gpus() {
	perf 0 all_reduce -g 3 --memory gpu -b 8 -e 64K -f 128
	is_right
	shows out '^# Memory: gpu, calls in order of a CUDA stream$'
	shows out '^#  Rank  0 .* device  0 \[0000:1B:00\.0\] Simulated '
	shows out '^#  Rank  1 .* device  1 \[0000:1C:00\.0\] Simulated '
	shows out '^#  Rank  2 .* device  0 \[0000:1B:00\.0\] .*, soft0:1 '
	perf 0 all_reduce -g 2 --memory gpu:1 -b 8 -e 8 -z 1
	is_right
	shows out '^# Memory: gpu, calls block$'
	shows out '^#  Rank  0 .* device  1 \[0000:1C'
	shows out '^#  Rank  1 .* device  1 \[0000:1C'
	perf 0 all_reduce -g 3 --memory mixed -b 8 -e 8
	shows out '^#  Rank  1 .* device  0 \[soft0:1\] '
	shows out '^#  Rank  2 .* device  0 \[0000:1B'
	perf 0 all_reduce -g 2 -b 8 -e 8 -M 0
	hides out Memory
}

every_collective_is_right() {
	for name in all_reduce reduce broadcast reduce_scatter all_gather \
		gather scatter all_to_all sendrecv barrier reduce_scatter_v \
		all_gather_v all_to_all_v; do
		perf 0 $name -g 2 --memory gpu -b 8 -e 300K -f 197 -c 2
		is_right
		perf 0 $name -g 3 --memory mixed -b 8 -e 300K -f 197 -z 1
		is_right
	done
	perf 0 all_reduce -g 2 --memory gpu -d all -o all --sizes 1237
	is_right
}

buffers_of_every_kind() {
	for kind in alloc malloc register; do
		perf 0 all_reduce -g 2 --memory gpu --buffers $kind \
			-b 96K -e 96K -u 4 --touch
		is_right
	done
	perf 0 all_reduce -g 2 --memory managed -b 96K -e 96K
	is_right
	perf 6 all_reduce -g 2 --memory managed --buffers register
	shows err 'cannot be registered'
}

ranks_of_every_kind() {
	perf 0 all_reduce -t 3 --memory gpu -b 8 -e 64K -f 128
	is_right
	perf 0 all_reduce -g 1 --memory gpu -b 8 -e 64K -f 128
	is_right
	expect 0 env LD_LIBRARY_PATH="$simulated" "$wreath" run -n 3 \
		--no-prefix "$wreath" perf all_gather --memory gpu -b 8 \
		-e 3K -n 2
	is_right
	shows out '^#  Rank  1 .* device  1 \[0000:1C'
	expect 6 env WREATH_GPU=off LD_LIBRARY_PATH="$simulated" "$wreath" \
		run -n 1 --no-prefix "$wreath" perf all_gather --memory gpu
}

records_say_where_it_was() {
	perf 0 all_reduce -g 2 --memory mixed -b 8 -e 8 --json "$dir/json" \
		--csv "$dir/csv"
	json "$dir/json" 'x["memory"] == "mixed"'
	json "$dir/json" '[d.get("gpu") for d in x["devices"]] == [0, None]'
	json "$dir/json" '"Simulated" in x["devices"][0]["gpu_name"]'
	awk -F, 'NR == 1 && $NF != "memory" || NR > 1 && $NF != "mixed" {
		exit 1 }' "$dir/csv" || complain "CSV: $(cat "$dir/csv")"
}

nonsense_is_refused() {
	perf 6 all_reduce --memory gpuu
	shows err 'did you mean gpu'
	perf 6 all_reduce --memory gpu:x
	perf 6 all_reduce --memory host:1
	perf 6 all_reduce --memory gpu:2
	shows err 'CUDA sees GPUs 0 to 1'
	perf 6 overlap --memory gpu
	shows err 'the processor'
	FAKE_CUDA=devices=1,memory=1M perf 3 all_reduce --memory gpu -e 4M
	shows err 'WREATH_ENOMEM'
	gpu 6 --gpu 7
	gpu 6 word
}

a_gpu_alone_is_measured() {
	gpu 0 -b 64K -n 3
	shows out '^# GPU 0: \[0000:1B:00\.0\] Simulated '
	shows out '^# Folds: by kernels'
	for type in int32 half bfloat16 float double f8e4m3; do
		for n in 2 8; do
			shows out "^ +$type +gpu +$n +[0-9]+ .* [0-9.]+\$"
		done
	done
	shows out '^ +float +from host +2 '
	shows out '^ +float +to host +2 '
	for n in alone 1 2 4 8; do
		shows out "^ +16384 +$n "
	done
	gpu 0 -b 64K -n 1 -d int8,uint64 --gpu 1 --json
	json "$dir/out" 'x["gpu"] == 1 and x["kernels"] and x["error"] is None'
	json "$dir/out" '{f["type"] for f in x["folds"]} ==
		{"int8", "uint64", "float"}'
	json "$dir/out" 'all(f["fold_gbs"]["min"] <= f["fold_gbs"]["median"] <=
		f["fold_gbs"]["max"] for f in x["folds"])'
	json "$dir/out" '{l["jobs_a_launch"] for l in x["launches"]} ==
		{0, 1, 2, 4, 8}'
	gpu 7 -b 64K -n 1 -d int8 --min-ratio 2
	shows out 'FAILED$'
	WREATH_GPU_REDUCE=host gpu 0 -b 64K -n 1 -d float
	shows out '^# Folds: staged, by the processor: WREATH_GPU_REDUCE=host'
}

without_cuda_one_sentence_says_why
the_table_names_the_gpus
every_collective_is_right
buffers_of_every_kind
ranks_of_every_kind
records_say_where_it_was
nonsense_is_refused
a_gpu_alone_is_measured
exit "$failed"
