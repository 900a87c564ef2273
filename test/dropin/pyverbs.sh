#!/bin/sh
# SPDX-License-Identifier: MIT
#
# pyverbs.sh LISTFILE [DEVICE [GID]]: run rdma-core's own tests, from Debian's
# package python3-pyverbs, on a device, by default soft0 and its GID 0, with
# whichever libibverbs the loader finds.  LISTFILE gets a line per test: name,
# verdict (pass, fail or skip), and after a tab the reason.
#
# Needs nothing of this project but suite.py beside it, so that it runs in a
# virtual machine too.  Status 0: all ran, whatever came out; 1: they did not;
# 77: they are not installed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
list=$1
device=${2:-soft0}
gid=${3:-0}
source=${PYVERBS_TESTS:-/usr/share/doc/rdma-core/tests}
# The bindings are compiled for the system's interpreter.
python=
for candidate in /usr/bin/python3 python3; do
	if "$candidate" -c 'import pyverbs' 2>/dev/null; then
		python=$candidate
		break
	fi
done
if [ -z "$python" ] || [ ! -e "$source/run_tests.py" ]; then
	echo "no python3-pyverbs"
	exit 77
fi

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# What is installed as documentation may be compressed.
cp -r "$source" "$dir/tests" && find "$dir/tests" -name '*.gz' -exec gzip -d \
	{} + || exit 1

# A test may hang; the whole takes 10 s.
rm -f "$list"
PYTHONDONTWRITEBYTECODE=1 timeout -k 5 "${PYVERBS_SECONDS:-120}" "$python" \
	"$here/suite.py" "$list" "$device" "$gid" "$dir" >"$dir/log" 2>&1
status=$?
# unittest's own status says whether any failed; its last lines, that it ended.
if ! grep -q '^Ran [0-9]* tests' "$dir/log" || grep -q _FailedTest "$list"; then
	echo "the tests did not come to their end (status $status):"
	tail -n 20 "$dir/log"
	exit 1
fi
[ -z "${PYVERBS_LOG:-}" ] || cp "$dir/log" "$PYVERBS_LOG"
exit 0
