#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: what is called as NCCL's is as NCCL's is.  Method: every nccl* name of
# NCCL's own library, where there is one, is exported, each by both its names
# and nothing else; every value, size and offset of our nccl.h is that of NCCL's
# header; and nothing of this library but libwreath is needed.
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0

complain() {
	echo "$*"
	failed=1
}

# exported LIBRARY: its names.
exported() {
	nm -D --defined-only "$1" | awk 'NF == 3 { print $3 }' | sort
}

lib=$BUILD/libwreath-nccl.so
exported "$lib" >"$dir/ours"
grep -v '^p\?nccl[A-Z]' "$dir/ours" | sed 's/$/ is exported, too/' >"$dir/odd"
[ ! -s "$dir/odd" ] || complain "$(cat "$dir/odd")"
# ncclResetDebugInitInternal is no call, and has one name.
sed -n 's/^nccl/pnccl/p' "$dir/ours" | grep -v Internal |
	comm -23 - "$dir/ours" >"$dir/lack"
[ ! -s "$dir/lack" ] || complain "without its second name: $(cat "$dir/lack")"
# Ours declares what it defines.
tr -d '\n' <lib/nccl/nccl.h | grep -o 'NCCL_BOTH([^,]*, *nccl[A-Za-z]*' |
	sed 's/.*[, ]//' | sort | comm -23 - "$dir/ours" >"$dir/lack"
[ ! -s "$dir/lack" ] || complain "in nccl.h alone: $(cat "$dir/lack")"

for theirs in /usr/local/cuda/lib*/libnccl.so.2 /usr/lib/*/libnccl.so.2; do
	[ -e "$theirs" ] || continue
	exported "$theirs" | grep '^p\?nccl[A-Z]' >"$dir/theirs"
	comm -13 "$dir/ours" "$dir/theirs" >"$dir/lack"
	[ ! -s "$dir/lack" ] ||
		complain "in $theirs, and not in ours: $(cat "$dir/lack")"
done

if [ -x "$BUILD/test/nccl/theirs/layout" ]; then
	"$BUILD/test/nccl/theirs/layout" | grep -v _VERSION_CODE >"$dir/b"
	"$BUILD/test/nccl/own/layout" | grep -v _VERSION_CODE >"$dir/a"
	[ "$(wc -l <"$dir/a")" -ge 80 ] || complain "few lines of layout"
	# Another version may have appended to its structures.
	[ "$("$BUILD/test/nccl/theirs/layout" | head -n 1)" != \
		"$("$BUILD/test/nccl/own/layout" | head -n 1)" ] ||
		diff "$dir/a" "$dir/b" || complain "nccl.h differs"
fi

needed=$(readelf -d "$lib" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
grep -qx 'libwreath\.so\.0' <<<"$needed" || complain "needs: $needed"
readelf -d "$lib" | grep -q 'SONAME.*\[libwreath-nccl\.so\.0\]' ||
	complain "its SONAME is not libwreath-nccl.so.0"
# No other room of the library, nor anything that is not in wreath.h.
nm -D --undefined-only "$lib" | awk '{ print $2 }' | grep '^wreath_' |
	sed 's/@.*//' |
	while read -r name; do
		grep -q "[ *]$name(" include/wreath.h || echo "$name"
	done >"$dir/odd"
[ ! -s "$dir/odd" ] || complain "not in wreath.h: $(cat "$dir/odd")"
exit $failed
