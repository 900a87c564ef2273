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
	# All of it is about what the soft device can be told to do wrong.
	*/t_faults) continue ;;
	esac
	test/one.sh "$name [$label]" 120 "$build/test/$name"
done
# shellcheck disable=SC2016
perf='env $RANKS_ENV "$WREATH" perf all_reduce -g $0 -b 1 -e 300K -f 7 -n 2 \
	-w 1 -d int8 | tee /dev/stderr | grep "values : 0 OK"'
export WREATH=$build/wreath
for n in 2 3 5; do
	test/one.sh "perf -g $n [$label]" 60 bash -c "$perf" $n
done
