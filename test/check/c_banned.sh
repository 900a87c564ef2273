#!/bin/sh
# SPDX-License-Identifier: MIT
# Calls that we do not make, and what to use instead.
here=$(dirname "$0")
find include lib bench examples test -name '*.[ch]' -o -name '*.inc' -o \
	-name '*.cu' | sort | xargs awk -f "$here/banned.awk" -f "$here/strip.awk"
