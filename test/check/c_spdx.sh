#!/bin/sh
# SPDX-License-Identifier: MIT
# Every source says its licence in its first lines.
faults=$({
	find include lib bench examples test .ci -name '*.[ch]' -o \
		-name '*.inc' -o -name '*.cc' -o -name '*.cu' -o \
		-name '*.sh' -o -name '*.awk' -o \
		-name '*.map' -o -path .ci/run
	printf '%s\n' Makefile
	find test -name '*.mk'
} | sort | while read -r file; do
	head -n 5 "$file" | grep -q 'SPDX-License-Identifier: MIT' ||
		echo "$file: no SPDX-License-Identifier"
done)
[ -z "$faults" ] || { echo "$faults"; exit 1; }
