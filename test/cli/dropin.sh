#!/bin/bash
# SPDX-License-Identifier: MIT
# What the tests of the drop-in share: source it, naming the tools that are
# needed.  Programs that were not written here then find libibverbs over the
# soft device.
# shellcheck source=test/cli/expect.sh
. "$(dirname "$0")/expect.sh"
[ -z "${TEST_UNDER:-}" ] || {
	echo "a sanitizer must be in the program, not in its library"
	exit 77
}
build=$(cd "${BUILD:-build}" && pwd)
[ -e "$build/soft/libibverbs.so.1" ] || { echo "no drop-in"; exit 77; }
for tool in "$@"; do
	command -v "$tool" >/dev/null || { echo "no $tool"; exit 77; }
done

# over KIND COMMAND...: as run, with one soft device of that kind.
over() {
	local kind=$1
	shift
	run env WREATH_SOFT="$kind:1" LD_LIBRARY_PATH="$build/soft" "$@"
}

listens() {
	grep -qE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F:]+ 0A" \
		/proc/net/tcp /proc/net/tcp6
}

# pair KIND COMMAND...: a server, and a client of it; both must succeed.  Their
# words are in $dir/server and $dir/out.
pair() {
	local kind=$1 tool=$2 server try port
	shift 2
	for try in 1 2 3; do
		port=$((20000 + RANDOM % 12000))
		WREATH_SOFT="$kind:1" LD_LIBRARY_PATH="$build/soft" \
			timeout -k 5 60 "$tool" -p $port "$@" \
			>"$dir/server" 2>&1 &
		server=$!
		within 10 listens $port && kill -0 $server 2>/dev/null && break
		kill $server 2>/dev/null
		wait $server
		[ "$try" != 3 ] ||
			complain "$kind: no server: $tool $*: $(tail -n 3 \
				"$dir/server")"
	done
	over "$kind" "$tool" -p $port "$@" localhost
	[ "$status" = 0 ] ||
		complain "$kind: status $status: $tool $*: $(tail -n 3 \
			"$dir/err" "$dir/out")"
	wait $server
	status=$?
	[ "$status" = 0 ] ||
		complain "$kind: server's status $status: $tool $*: $(tail \
			-n 3 "$dir/server")"
}
