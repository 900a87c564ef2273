#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Install into an empty folder, and be a customer there: the examples are
# compiled by what pkg-config says, with the shared library and with the static
# one, and run; then uninstall, and nothing is left.
set -u
B=${B:-build}
make=${MAKE:-make}
prefix=/opt/wreath
stage=$PWD/$B/stage
flags=${SAN:+-fsanitize=$SAN}
export PKG_CONFIG_SYSROOT_DIR=$stage
export PKG_CONFIG_LIBDIR=$stage$prefix/lib/pkgconfig
export PKG_CONFIG_PATH=
status=0

fault() {
	echo "$*"
	status=1
}

rm -rf "$stage" "$stage-static"
"$make" -s --no-print-directory install DESTDIR="$stage" PREFIX=$prefix \
	${SAN:+SAN="$SAN"} || exit 1
cd "$stage$prefix" || exit 1
for file in include/wreath.h lib/libwreath.so lib/libwreath.so.0 \
	lib/libwreath.a lib/pkgconfig/wreath.pc bin/wreath \
	include/wreath-nccl/nccl.h lib/libwreath-nccl.so \
	lib/libwreath-nccl.so.0 lib/wreath/nccl/libnccl.so.2 \
	lib/wreath/nccl/libnccl.so lib/wreath/nccl/libwreath.so.0 \
	share/man/man7/wreath_nccl.7 \
	bin/all_reduce_perf bin/alltoall_perf bin/sendrecv_perf \
	share/man/man1/wreath.1 share/man/man7/wreath.7 \
	share/man/man7/wreath_env.7 share/man/man3/wreath_all_reduce.3; do
	[ -e $file ] || fault "not installed: $file"
done
cd "$OLDPWD" || exit 1
[ -z "$(find "$stage" -type f -perm /022)" ] ||
	fault "others may write what was installed"
grep -rqs "$stage" "$stage$prefix/lib/pkgconfig" "$stage$prefix/share" &&
	fault "what was installed names the folder it was staged in"

command -v pkg-config >/dev/null || {
	[ $status = 0 ] || exit $status
	echo "no pkg-config"
	exit 77
}
header=$(awk '/define WREATH_VERSION_/ { printf "%s%s", s, $3; s = "." }' \
	include/wreath.h)
[ "$(pkg-config --modversion wreath)" = "$header" ] ||
	fault "wreath.pc and wreath.h have different versions"

# For the static library: the same installation without the shared one.
cp -r "$stage" "$stage-static"
rm -f "$stage-static$prefix"/lib/libwreath.so*

# compile SOURCE STAGE OUTPUT [--static]
compile() {
	local compiler=${CC:-cc} standard=-std=gnu11
	case $1 in
	*.cc) compiler=${CXX:-c++} standard=-std=c++11 ;;
	esac
	# shellcheck disable=SC2046,SC2086
	PKG_CONFIG_SYSROOT_DIR=$2 "$compiler" $standard $flags -O1 -Wall \
		-Wextra -Werror "$1" -o "$3" \
		$(PKG_CONFIG_SYSROOT_DIR=$2 pkg-config ${4:-} \
			--cflags --libs wreath) -lm ||
		fault "$1 does not compile against the installed copy ${4:-}"
}

programs=0
export LD_LIBRARY_PATH=$stage$prefix/lib
for source in "$stage$prefix"/share/doc/wreath/examples/*.c \
	"$stage$prefix"/share/doc/wreath/examples/*.cc; do
	[ -e "$source" ] || continue
	name=$(basename "${source%.*}")
	# One is a CUDA program, and t_examples.sh runs it.
	! grep -q '^#include <cuda' "$source" || continue
	programs=$((programs + 1))
	for kind in "" --static; do
		program=$stage/$name$kind
		compile "$source" "$stage${kind:+-static}" "$program" $kind
		[ -x "$program" ] || continue
		(cd "$(dirname "$source")" && timeout 60 \
			"$stage$prefix/bin/wreath" run -n 2 "$program") ||
			fault "$name $kind: exit status $?"
		rm -f "$program"
	done
done
[ $programs -gt 0 ] || fault "no examples were installed"

# A program of NCCL, by the header and by the folder that were installed.
unset LD_LIBRARY_PATH
program=$stage/abi
# shellcheck disable=SC2086
"${CC:-cc}" -std=gnu11 $flags -pthread \
	-I "$stage$prefix/include/wreath-nccl" \
	test/nccl/kit.c test/nccl/abi.c test/nccl/collectives.c \
	test/nccl/life.c test/nccl/nonblocking.c test/nccl/bad.c \
	-L "$stage$prefix/lib/wreath/nccl" -lnccl \
	-Wl,--allow-shlib-undefined -o "$program" ||
	fault "a program of NCCL does not compile"
LD_LIBRARY_PATH=$stage$prefix/lib "$program" all ||
	fault "abi: status $?"
rm -f "$program"
# There by the name that such programs are linked with.
program=${BUILD:-$PWD/$B}/test/nccl/own/abi
if [ -x "$program" ]; then
	LD_LIBRARY_PATH=$stage$prefix/lib/wreath/nccl "$program" all ||
		fault "by the folder alone: status $?"
fi

export LD_LIBRARY_PATH=$stage$prefix/lib
# Names inside the static library are not in the way of a program's own.
own=$stage/own_names
compile "$(dirname "$0")/own_names.c" "$stage-static" "$own" --static
[ ! -x "$own" ] || "$own" || fault "own_names: exit status $?"
rm -f "$own"
unset LD_LIBRARY_PATH
# Exactly the public names are global in it.
nm -g --defined-only "$stage$prefix/lib/libwreath.a" |
	awk 'NF == 3 && $3 !~ /^wreath_/ { print "global: " $3; bad = 1 }
	END { exit bad }' || fault "libwreath.a shows more than wreath_*"

"$make" -s --no-print-directory uninstall DESTDIR="$stage" PREFIX=$prefix ||
	fault "uninstall failed"
left=$(find "$stage" ! -type d)
[ -z "$left" ] || fault "left by uninstall: $left"
rm -rf "$stage" "$stage-static"
exit $status
