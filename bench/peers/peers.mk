# SPDX-License-Identifier: MIT
# Other libraries beside this one; bench/peers/README.md says how to read it.
bench-peers: $B/wreath
	@bench/peers/run.sh $B

.PHONY: bench-peers
