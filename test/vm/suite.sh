#!/bin/bash
# SPDX-License-Identifier: MIT
#
# suite.sh BUILD DEVICE [NAME=VALUE...]: the functional tests of the library on
# one RDMA device of this machine, a line each: ranks through wreath.h, and the
# command.  Called in the virtual machine, or where there is a real device.
# $RESULTS is the folder for logs.
set -u
build=$1
device=$2
shift 2
export RANKS_ENV="WREATH_HCA=$device $*" LC_ALL=C
label=$device
mkdir -p "$RESULTS"
[ $# = 0 ] || label="$device $*"

for test in test/loop/t_*.c; do
	name=${test#test/}
	name=${name%.c}
	case $name in
	*_long) continue ;;
	# What is about the soft device, or about simulated GPUs beside it.
	*/t_faults | */t_gpu*) continue ;;
	esac
	test/one.sh "$name [$label]" 120 "$build/test/$name"
done
# perf COLLECTIVE [OPTIONS]: the command's own check of every element.
# shellcheck disable=SC2016
perf='env $RANKS_ENV "$WREATH" perf "$1" -b 1 -e 100K -f 300 -n 2 -w 1 \
	-d int8 "${@:2}" | tee /dev/stderr | grep "values : 0 OK"'
perf() {
	test/one.sh "perf $* [$label]" 60 bash -c "$perf" perf "$@"
}
export WREATH=$build/wreath
for n in 2 3 5; do
	perf all_reduce -g $n -e 300K -f 7
done
# Two nodes, so that those that tell nodes apart do so.
for algo in tree split-ring halving; do
	perf all_reduce -g 4 --nodes 1,3 --algo $algo
done
for collective in broadcast reduce; do
	perf $collective -g 3 --root all
done
for collective in gather scatter reduce_scatter all_gather all_to_all \
	reduce_scatter_v all_gather_v all_to_all_v sendrecv barrier; do
	perf $collective -g 3
done
