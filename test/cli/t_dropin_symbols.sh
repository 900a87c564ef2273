#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: whatever is linked to libibverbs can be loaded with the drop-in.
# Method: the public names of the library that is installed, with their
# versions, are all there, as far as the drop-in knows the version; and names
# that are not libibverbs' are not.
# shellcheck source=test/cli/dropin.sh
. "$(dirname "$0")/dropin.sh" objdump

# names LIBRARY: "VERSION NAME", defaults only.
names() {
	objdump -T "$1" | awk 'NF > 5 && !/\*UND\*/ &&
		$(NF - 1) ~ /^IBVERBS_/ && $(NF - 1) != $NF {
			print $(NF - 1), $NF
		}' | sort
}

names "$build/soft/libibverbs.so.1" >"$dir/ours"
[ "$(wc -l <"$dir/ours")" -ge 140 ] || complain "few: $(wc -l <"$dir/ours")"
objdump -T "$build/soft/libibverbs.so.1" | awk 'NF > 5 && !/\*UND\*/ &&
	$(NF - 1) !~ /^IBVERBS_/ && $NF !~ /^IBVERBS_/' >"$dir/strange"
[ ! -s "$dir/strange" ] || complain "exported too: $(cat "$dir/strange")"

installed=$(ldconfig -p 2>/dev/null |
	sed -n 's/.*libibverbs\.so\.1 .*x86-64.* => //p' | head -n 1)
if [ -n "$installed" ]; then
	cut -d' ' -f1 "$dir/ours" | sort -u >"$dir/versions"
	names "$installed" | grep -wFf "$dir/versions" >"$dir/theirs"
	lacking=$(comm -13 "$dir/ours" "$dir/theirs")
	[ -z "$lacking" ] || complain "lacks: $lacking"
fi
exit $failed
