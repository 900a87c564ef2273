#!/bin/sh
# SPDX-License-Identifier: MIT
# The man pages: those that must be there are there, mandoc has nothing to warn
# of, and every section has a known name and stands in the usual order.
status=0
for page in wreath.1 wreath.7 wreath_env.7; do
	[ -e "man/$page" ] || { echo "man/$page is missing"; status=1; }
done
# mandoc does not see a misspelt section.
for page in man/*.[1-8]; do
	[ -e "$page" ] || continue
	grep -q '^\.so ' "$page" && continue
	awk -f "$(dirname "$0")/man.awk" "$page" || status=1
done
[ $status = 0 ] || exit $status
command -v mandoc >/dev/null || {
	echo "sections are right; no mandoc for the rest"
	exit 77
}
for page in man/*.[1-8]; do
	grep -q '^\.so ' "$page" && continue
	mandoc -T lint -W warning "$page" || status=1
done
exit $status
