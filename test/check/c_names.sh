#!/bin/sh
# SPDX-License-Identifier: MIT
# One set of names in four places: declared in wreath.h, listed in wreath.map,
# exported by the library, and described by a page of section 3.
lib=${BUILD:-${B:-build}}/libwreath.so.0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
status=0

here=$(dirname "$0")
awk -f "$here/code.awk" -f "$here/strip.awk" include/wreath.h | tr '\n' ' ' |
	grep -o 'WREATH_API[^;]*;' | grep -o 'wreath_[a-z0-9_]*(' |
	tr -d '(' | sort >"$tmp/wreath.h"
grep -o '^[[:space:]]*wreath_[a-z0-9_]*;' lib/wreath.map |
	tr -d ' \t;' | sort >"$tmp/wreath.map"
nm -D --defined-only "$lib" | awk '$2 != "A" { print $3 }' |
	sed 's/@.*//' | sort >"$tmp/$(basename "$lib")"
# A page is named by its file, one name a file; links lead to a page that
# covers several.
for page in man/*.3; do
	[ -e "$page" ] || continue
	name=$(basename "$page" .3)
	real=$page
	if grep -q '^\.so ' "$page"; then
		real=man/$(sed -n 's/^\.so \(man3\/\)*//p' "$page")
	fi
	if [ ! -e "$real" ]; then
		echo "$page: leads to $real, which does not exist" >&2
	elif awk '/^\.S[hH]/ { on = $2 == "NAME" } on' "$real" |
		grep -qw "$name"; then
		echo "$name"
	else
		echo "$real: NAME does not have $name" >&2
	fi
done | sort >"$tmp/man3"

[ -s "$tmp/wreath.h" ] || { echo "wreath.h declares nothing"; status=1; }
for other in wreath.map "$(basename "$lib")" man3; do
	comm -23 "$tmp/wreath.h" "$tmp/$other" |
		sed "s/$/: in wreath.h, not in $other/" >"$tmp/lack"
	comm -13 "$tmp/wreath.h" "$tmp/$other" |
		sed "s/$/: in $other, not in wreath.h/" >"$tmp/more"
	cat "$tmp/lack" "$tmp/more"
	[ ! -s "$tmp/lack" ] && [ ! -s "$tmp/more" ] || status=1
done

# A name in a page's NAME section is a function, too.
for page in man/*.3; do
	[ -e "$page" ] || continue
	awk '/^\.S[hH]/ { on = $2 == "NAME" } on' "$page" |
		grep -o 'wreath_[a-z0-9_]*' | sort -u | comm -23 - \
		"$tmp/wreath.h" | sed "s|^|$page: NAME has |" >"$tmp/more"
	cat "$tmp/more"
	[ ! -s "$tmp/more" ] || status=1
done

# Whatever a room promises is there.
rooms=$(sed -n 's/^\([a-z0-9]*\):.*/\1/p' lib/rooms | tr '\n' '|')
nm -D --undefined-only "$lib" | grep -E " (${rooms}wreath)_[^@]*$" &&
	status=1

readelf -d "$lib" | grep -q 'SONAME.*\[libwreath\.so\.0\]' || {
	echo "$lib: its SONAME is not libwreath.so.0"
	status=1
}
exit $status
