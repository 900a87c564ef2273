#!/bin/sh
# SPDX-License-Identifier: MIT
# A second pair of eyes that does not compile, and knows no CUDA.
command -v cppcheck >/dev/null || { echo "no cppcheck"; exit 77; }
# shellcheck disable=SC2046
exec cppcheck -q -j 2 --std=c11 --language=c --error-exitcode=1 \
	--enable=warning,portability,performance --inline-suppr \
	--suppressions-list="$(dirname "$0")/cppcheck.allow" \
	-UGPU -Iinclude -Ilib -I. $(find lib bench -name '*.c' | sort)
