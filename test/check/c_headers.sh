#!/bin/sh
# SPDX-License-Identifier: MIT
# Every header compiles by itself, and twice; wreath.h and nccl.h also as
# strict C11 and as C++, where they are all that a program needs.
flags="-Iinclude -Ilib -I. -Ilib/nccl -Wall -Wextra -Werror -fsyntax-only"
# It is the .c file that chooses how much of the system it sees.
all="-std=gnu11 -D_GNU_SOURCE"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
status=0

# once COMPILER NAME INCLUDES FLAGS...
once() {
	compiler=$1
	file=$tmp/$2
	# Only the door has a say in what its users must include first.
	printf '%b\nextern int end_of_file;\n' "$3" >"$file"
	shift 3
	# shellcheck disable=SC2086
	"$compiler" "$@" $flags "$file" || status=1
}

for header in $(find include lib bench examples test -name '*.h' | sort); do
	path=${header#include/}
	path=${path#lib/}
	# shellcheck disable=SC2086
	once "${CC:-cc}" one.c "#include \"$path\"" $all
	# shellcheck disable=SC2086
	once "${CC:-cc}" two.c "#include \"$path\"\n#include \"$path\"" $all
done
once "${CC:-cc}" strict.c '#include <wreath.h>' -std=c11 -Wpedantic
once "${CC:-cc}" nccl.c '#include <nccl/nccl.h>' -std=c11 -Wpedantic
for compiler in g++ clang++; do
	command -v $compiler >/dev/null || continue
	once "$compiler" plain.cc \
		'#include <wreath.h>\nint main() { return wreath_version(); }' \
		-std=c++11 -Wpedantic -Wold-style-cast
	once "$compiler" nccl.cc '#include <nccl/nccl.h>' -std=c++11 -Wpedantic
done
exit $status
