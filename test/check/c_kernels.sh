#!/bin/sh
# SPDX-License-Identifier: MIT
# The image of the kernels for GPUs has all of them, for each architecture and
# as PTX, and none keeps much in memory for want of registers.
image=build/gpu/reduce.fatbin
[ -e $image ] || { echo "no image of kernels: built without nvcc"; exit 77; }
PATH=$PATH:${CUDA:-/usr/local/cuda}/bin
command -v cuobjdump >/dev/null || { echo "no cuobjdump"; exit 77; }

types="int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16
	float32 float64 float8e4m3 float8e5m2"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
for type in $types; do
	for op in sum prod min max; do
		echo "wreath_fold_${type}_$op"
	done
done | sort >"$tmp/wanted"

# expect WHAT: the names on standard input are the wanted ones.
status=0
expect() {
	sort -u >"$tmp/found"
	comm -3 "$tmp/wanted" "$tmp/found" | sed "s/^/$1: /" | grep . &&
		status=1
}

archs=$(cuobjdump -lelf $image | grep -o 'sm_[0-9]*')
[ -n "$archs" ] || { echo "$image: no code"; exit 1; }
for arch in $archs; do
	cuobjdump -symbols -arch "$arch" $image |
		grep -o 'wreath_fold_[a-z0-9_]*$' | expect "$arch"
done
cuobjdump -ptx $image | sed -n 's/.*\.entry \(wreath_fold[a-z0-9_]*\).*/\1/p' |
	expect PTX
cuobjdump -res-usage $image 2>&1 | sed -n \
	's/^ Function \(wreath_[^:]*\):/\1/; T
	N; s/\n.*STACK:\([0-9]*\).*/ \1/; p' | awk '$2 > 128 {
		print $1 " keeps " $2 " bytes a thread in memory"
		bad = 1
	}
	END { exit bad }' || status=1
exit $status
