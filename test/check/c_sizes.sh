#!/bin/sh
# SPDX-License-Identifier: MIT
# No file and no function is too long to read at one sitting.
here=$(dirname "$0")
{
	find include lib bench examples test \
		-name '*.[ch]' -o -name '*.inc' -o -name '*.cc' -o \
		-name '*.cu' -o -name '*.sh' -o -name '*.awk'
	printf '%s\n' Makefile
	find test -name '*.mk'
} | sort | xargs awk -f "$here/sizes.awk" -f "$here/strip.awk" \
	"${SIZES_ALLOW:-$here/sizes.allow}"
