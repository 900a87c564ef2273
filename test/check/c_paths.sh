#!/bin/sh
# SPDX-License-Identifier: MIT
# No file that is kept names a place on its author's machine: a home, or the
# folder that this very checkout stands in.
tmp=$(mktemp) || exit 1
trap 'rm -f "$tmp"' EXIT
if git rev-parse --git-dir >/dev/null 2>&1; then
	git ls-files --cached --others --exclude-standard
else
	find . -type f -not -path './build*' -not -path './.git/*' |
		sed 's|^\./||'
fi | while read -r file; do
	[ ! -f "$file" ] || printf '%s\0' "$file"
done >"$tmp"

# In brackets, so that this file does not find itself.
pattern='/[h]ome/|/[U]sers/|/[r]oot/'
top=$(pwd | cut -d / -f 2)
case $top in
home | root | Users | usr | tmp | var | opt | srv | mnt | build | src | "") ;;
*) pattern="$pattern|(^|[^A-Za-z0-9_.])/$top/" ;;
esac
! xargs -0 grep -nIE -e "$pattern" <"$tmp"
