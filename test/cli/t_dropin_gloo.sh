#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: Gloo's ibverbs transport is right over the soft device.
# Method: test/dropin/gloo.cc, 2 to 4 ranks, both personalities.
# shellcheck source=test/cli/dropin.sh
. "$(dirname "$0")/dropin.sh"
[ -x "$build/soft/gloo" ] || { echo "no libgloo-dev"; exit 77; }

for kind in roce ib; do
	for n in 2 3 4; do
		mkdir "$dir/meet"
		pids=
		for ((rank = 0; rank < n; rank++)); do
			WREATH_SOFT=$kind:1 LD_LIBRARY_PATH=$build/soft \
				timeout -k 5 60 "$build/soft/gloo" \
				"$dir/meet" $rank $n >"$dir/$rank" 2>&1 &
			pids="$pids $!"
		done
		rank=0
		for pid in $pids; do
			if ! wait "$pid" || ! grep -qx right "$dir/$rank"; then
				complain "$kind: rank $rank of $n: $(tail -n 3 \
					"$dir/$rank")"
			fi
			rank=$((rank + 1))
		done
		rm -r "$dir/meet"
	done
done
exit $failed
