#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: a program of NCCL with memory of GPUs gets the order of CUDA's streams.
# Method: it runs on the simulated driver of CUDA, whose streams run late and
# out of step, with several seeds and in each way that wreath reaches a GPU; and
# a program for the host runs beside that driver as without it.
set -u
failed=0
export LD_LIBRARY_PATH=$BUILD/nccl:$BUILD/cuda

# passes SETTING...
passes() {
	timeout 100 env "$@" "$BUILD/test/nccl/own/gpu" >/dev/null || {
		echo "$*: exit status $?"
		failed=1
	}
}

for seed in ${SEED:-1 2 3}; do
	passes FAKE_CUDA=seed="$seed"
done
passes FAKE_CUDA=devices=1,late=1ms
passes FAKE_CUDA=nodmabuf WREATH_GPU_REDUCE=host
passes FAKE_CUDA=noipc,devices=4
passes WREATH_GPU_IPC=off WREATH_GPU_DIRECT=off
for test in groups children memory; do
	timeout 60 "$BUILD/test/nccl/own/abi" "$test" || {
		echo "$test beside the driver: exit status $?"
		failed=1
	}
done
exit $failed
