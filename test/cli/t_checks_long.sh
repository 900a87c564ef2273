#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: a check that finds nothing is worth nothing unless it would have.
# Method: a small tree that every check accepts; then one fault at a time is
# planted in it, and the check meant for it must fail and name the file.
set -u
checks=$PWD/test/check
tree=$(mktemp -d) || exit 1
trap 'rm -rf "$tree"' EXIT
cd "$tree" || exit 1
failed=0
# Of the tree that is made here, not of this one.
export SIZES_ALLOW=sizes.allow

# Write the sound tree anew.
plain() {
	rm -rf "${tree:?}"/*
	mkdir -p lib/base lib/sched lib/verbs lib/nccl include bench \
		examples man test/unit .ci
	printf 'base:\nsched: base\nverbs: base\nnccl:\n' >lib/rooms
	printf '/* SPDX-License-Identifier: MIT */\n' | tee include/wreath.h \
		lib/base/base.h lib/sched/sched.h lib/sched/private.h \
		lib/verbs/verbs.h lib/base/env.c lib/sched/ring.c \
		lib/verbs/ibv.c lib/nccl/nccl.h bench/main.c \
		examples/1_hello.c test/unit/t_sched_ring.c >/dev/null
	echo 'int wreath_version(void);' | tee -a include/wreath.h \
		>>lib/nccl/nccl.h
	printf '# SPDX-License-Identifier: MIT\n' >Makefile
	: >sizes.allow
}

# refuses CHECK FILE LINES...: with the lines added to it, the file is refused.
refuses() {
	local check=$1 file=$2 out
	shift 2
	plain
	mkdir -p "$(dirname "$file")"
	printf '%b\n' "$@" >>"$file"
	if out=$("$checks/c_$check.sh" 2>&1); then
		echo "c_$check accepts in $file: $*"
		failed=1
	elif [ "${out#*"$file"}" = "$out" ]; then
		echo "c_$check does not name $file: $out"
		failed=1
	fi
}

accepts() {
	local check=$1 file=$2 out
	shift 2
	plain
	printf '%b\n' "$@" >>"$file"
	out=$("$checks/c_$check.sh" 2>&1) || {
		echo "c_$check refuses in $file: $*: $out"
		failed=1
	}
}

# function NAME LINES: a function of so many lines, counted by its braces.
function_of() {
	printf 'int %s(void)\\n{\\n' "$1"
	for ((i = 2; i < $2; i++)); do
		printf '\\t;\\n'
	done
	printf '}'
}

ring=lib/sched/ring.c
accepts rooms $ring '#include "sched.h"' '#include "sched/private.h"' \
	'#include "base/base.h"' '#include "wreath.h"' '#include <string.h>'
accepts rooms lib/verbs/ibv.c '#include <infiniband/verbs.h>'
accepts rooms test/unit/t_sched_ring.c '#include "sched/private.h"'
accepts rooms $ring '/*' '#include "verbs/verbs.h"' '*/'
refuses rooms $ring '#include "verbs/verbs.h"'
refuses rooms lib/base/env.c '#include "sched/sched.h"'
refuses rooms lib/verbs/ibv.c '#include "base/private.h"'
refuses rooms $ring '#include "../verbs/verbs.h"'
refuses rooms $ring '#include "nowhere/nowhere.h"'
refuses rooms $ring '#include <infiniband/verbs.h>'
refuses rooms $ring '#include <immintrin.h>'
refuses rooms $ring '#include <pthread.h>'
refuses rooms $ring '#include HEADER'
refuses rooms lib/verbs/ibv.c '#include <sys/socket.h>'
refuses rooms lib/verbs/ibv.c '#  include <netinet/in.h>'
refuses rooms lib/verbs/ibv.c '#include <cuda.h>'
refuses rooms bench/main.c '#include "sched/private.h"'
refuses rooms examples/1_hello.c '#include "base/base.h"'
refuses rooms test/unit/t_base_env.c '#include "sched/private.h"'
refuses rooms test/loop/t_x.c '#include "sched/sched.h"'
refuses rooms lib/other/other.c 'int x;'
refuses rooms lib/rooms 'base: sched'
refuses rooms lib/rooms 'mem: net' 'net: base'
refuses rooms lib/rooms 'empty: base'

accepts banned $ring 'int x; /* never strcpy( */'
accepts banned $ring '\tlog("malloc(3) failed");'
accepts banned $ring '\ttable->free(x);' '\tmy_malloc(3);'
accepts banned lib/base/env.c '\tx = secure_getenv(name);' '\tfree(x);'
accepts banned $ring '\twreath_assert(a <= b && a != c && b == d);'
refuses banned $ring '\tsprintf(out, "%d", x);'
refuses banned $ring '\tx = malloc(7);'
refuses banned $ring '/* one\n*/\tfree (x);'
refuses banned $ring '\tprintf("");'
refuses banned $ring '\tx = getenv("HOME");'
refuses banned $ring '\texit(1);'
refuses banned $ring '\twreath_assert(x++ < 3);'
refuses banned $ring '\twreath_assert((x = y) > 3);'
refuses banned $ring '\tif (x == NULL)'
refuses banned $ring 'typedef struct x x_t;'
refuses banned bench/main.c '\tstrcpy(a, b);'
refuses banned examples/1_hello.c '\tx = atoi(argv[1]);'
refuses banned test/unit/t_sched_ring.c '\tusleep(1);'

accepts sizes $ring "$(function_of ring 70)"
refuses sizes $ring "$(function_of ring 71)"
accepts sizes test/unit/t_sched_ring.c "$(function_of ring 90)"
refuses sizes test/unit/t_sched_ring.c "$(function_of ring 91)"
refuses sizes $ring 'int ring(void) {' '}'
accepts sizes $ring "$(for ((i = 2; i < 400; i++)); do printf ';\\n'; done)"
refuses sizes $ring "$(for ((i = 0; i < 401; i++)); do printf ';\\n'; done)"
refuses sizes Makefile "$(for ((i = 0; i < 401; i++)); do printf ';\\n'; done)"

wide=$(printf 'x%.0s' {1..72})
accepts columns $ring "\t$wide"
refuses columns $ring "\tx$wide"
accepts columns $ring "\tf(\"x$wide\");"
refuses columns $ring "\tf(\"$wide$wide\");"
refuses columns $ring 'int x; '
refuses columns $ring '    int x;'
refuses columns $ring 'int x; // x'
accepts columns $ring 'char *x = "http://example.org";'
refuses columns $ring '/* TO''DO: more */'
refuses columns Makefile '# FIX''ME'

accepts headers lib/sched/sched.h '#define X 1' 'struct x;'
refuses headers lib/sched/sched.h 'size_t x(void);'
refuses headers lib/sched/sched.h 'struct x { int y; };'

accepts paths $ring '/* /usr/include */'
refuses paths $ring '/* /ho''me/someone */'
refuses paths Makefile "X := /ro""ot/x"

refuses shell test/x.sh 'x'
plain
printf 'int x;\n' >lib/sched/other.c
"$checks/c_spdx.sh" >/dev/null && {
	echo "c_spdx accepts a file without a licence"
	failed=1
}

page=man/wreath_env.7
table='\t{"WREATH_X", BASE_ENV_INT},'
refuses man man/wreath.1 '.Sh DESCRIPTOIN'
plain
printf '%b\n' "$table" >>lib/base/env.c
printf '.It Ev WREATH_X\n' >$page
"$checks/c_env.sh" || failed=1
printf '.It Ev WREATH_Y\n' >>$page
"$checks/c_env.sh" >/dev/null && {
	echo "c_env accepts a variable that does not exist"
	failed=1
}
printf '.It Ev WREATH_Y\n' >$page
"$checks/c_env.sh" | grep -q 'not describe WREATH_X' || {
	echo "c_env accepts a variable without a paragraph"
	failed=1
}
exit $failed
