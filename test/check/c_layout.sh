#!/bin/sh
# SPDX-License-Identifier: MIT
# The values and sizes that programs were compiled with stay as they are.
exec "${CC:-cc}" -std=gnu11 -Iinclude -Wall -Wextra -Werror -fsyntax-only \
	"$(dirname "$0")/layout.c"
