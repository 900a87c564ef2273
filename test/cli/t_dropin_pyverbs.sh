#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: rdma-core's own tests find no fault with the soft device.
# Method: all of them, in both personalities.  What the device does not have
# they skip; 86 of 273 passed on soft-RoCE when this was written, and 8 of
# those are about memory windows.
# shellcheck source=test/cli/dropin.sh
. "$(dirname "$0")/dropin.sh"

for kind in roce ib; do
	over $kind test/dropin/pyverbs.sh "$dir/list"
	[ "$status" != 77 ] || { cat "$dir/out"; exit 77; }
	[ "$status" = 0 ] || complain "$kind: $(cat "$dir/out")"
	grep -E '^[^ ]* fail' "$dir/list" && complain "$kind: failed"
	n=$(grep -cE '^[^ ]* pass' "$dir/list")
	[ "$n" -ge 78 ] || complain "$kind: only $n tests passed"
done
exit $failed
