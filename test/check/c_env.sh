#!/bin/sh
# SPDX-License-Identifier: MIT
# Every variable of the table in lib/base/env.c has its paragraph in
# wreath_env(7), and no other has one.
page=man/wreath_env.7
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

grep -o '{"WREATH_[A-Z0-9_]*"' lib/base/env.c | tr -d '{"' | sort >"$tmp/table"
[ -s "$tmp/table" ] || { echo "lib/base/env.c has no table"; exit 1; }
[ -e $page ] || { echo "$page is missing"; exit 1; }
# The tags of its lists: .It Ev NAME in mdoc, .B NAME after .TP in man.
grep -E '^\.(It (Ev )?|B |BR )' $page | grep -o 'WREATH_[A-Z0-9_]*' |
	sort -u >"$tmp/page"
comm -23 "$tmp/table" "$tmp/page" | sed "s|^|$page does not describe |" \
	>"$tmp/faults"
comm -13 "$tmp/table" "$tmp/page" |
	sed "s|$| is described, and not in the table|" >>"$tmp/faults"
cat "$tmp/faults"
[ ! -s "$tmp/faults" ]
