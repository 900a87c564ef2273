#!/bin/sh
# SPDX-License-Identifier: MIT
# Who includes whom is as lib/rooms allows.
here=$(dirname "$0")
find include lib bench examples test -name '*.[ch]' -o -name '*.inc' -o \
	-name '*.cc' -o -name '*.cu' | sort | xargs awk -f "$here/rooms.awk" \
	-f "$here/strip.awk" lib/rooms
