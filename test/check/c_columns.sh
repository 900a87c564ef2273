#!/bin/sh
# SPDX-License-Identifier: MIT
# Width of lines, blanks, form of comments, no remarks on unfinished work.
here=$(dirname "$0")
{
	find include lib bench examples test -name '*.[ch]' -o -name '*.inc' \
		-o -name '*.cc' -o -name '*.cu' -o -name '*.sh' \
		-o -name '*.awk' -o -name '*.map'
	printf '%s\n' Makefile
	find test -name '*.mk'
} | sort | xargs awk -f "$here/columns.awk" -f "$here/strip.awk"
