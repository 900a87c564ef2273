#!/bin/sh
# SPDX-License-Identifier: MIT
# Every script is clean to shellcheck, may be executed, and stands behind a
# line that names its shell.
status=0
scripts=$(find .ci bench examples test -name '*.sh' -o -path .ci/run | sort)
for script in $scripts; do
	head -n 1 "$script" | grep -q '^#!/bin/\(ba\)\?sh$' || {
		echo "$script: does not begin with #!/bin/sh or #!/bin/bash"
		status=1
	}
	[ -x "$script" ] || { echo "$script: cannot be executed"; status=1; }
done
[ $status = 0 ] || exit $status
command -v shellcheck >/dev/null || { echo "no shellcheck"; exit 77; }
# shellcheck disable=SC2086
shellcheck $scripts
