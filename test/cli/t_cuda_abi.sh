#!/bin/sh
# SPDX-License-Identifier: MIT
# The simulated driver's numbers are those of CUDA's own header.
header=${CUDA_HOME:-/usr/local/cuda}/include
[ -f "$header/cuda.h" ] || { echo "no cuda.h in $header"; exit 77; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
# Each line "NAME = VALUE," of an enumeration becomes an assertion.
{
	echo '#include <cuda.h>'
	assertion='_Static_assert(\1 == \2, "\1");'
	sed -n "s/^\t\(CU[A-Z0-9_]*\) = \(.*\),\$/$assertion/p" \
		test/cuda/abi.h | grep -v CU_DEVICE_INVALID
	echo '_Static_assert(CU_DEVICE_INVALID == (CUdevice)-2, "invalid");'
	echo '_Static_assert(sizeof(CUuuid) == 16, "uuid");'
	echo '_Static_assert(sizeof(CUipcMemHandle) == 64, "handle");'
} >"$tmp/abi.c"
[ "$(wc -l <"$tmp/abi.c")" -gt 100 ] || { echo "too few numbers"; exit 1; }
"${CC:-cc}" -std=gnu11 -I"$header" -fsyntax-only "$tmp/abi.c"
