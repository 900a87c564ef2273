#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: the set-up says what it runs before it runs it, asks for no more than
# is missing, and tells what to do where it may do nothing.
# Method: a PATH with false apt-get, sudo and id, that only write down how they
# were called, and without the tools that are to be missing.
set -u
setup=$PWD/test/setup.sh
bin=$(mktemp -d) || exit 1
trap 'rm -rf "$bin"' EXIT
failed=0

for tool in sh sed tr cut ls cat env; do
	ln -s "$(command -v $tool)" "$bin/$tool" 2>/dev/null
done
# false NAME SCRIPT: a command that is not the real one.
false_one() {
	rm -f "$bin/$1"
	printf '#!/bin/sh\n%s\n' "$2" >"$bin/$1"
	chmod +x "$bin/$1"
}

check() {
	[ "$1" = "$2" ] && return
	printf 'expected:\n%s\ngot:\n%s\n' "$2" "$1"
	failed=1
}

for tool in cc ld make c++ pkg-config git clang cppcheck shellcheck mandoc \
	gnuplot mpirun.openmpi mpicc.openmpi mpirun.mpich mpicc.mpich \
	ibv_devinfo ib_write_bw ucx_perftest python3; do
	false_one $tool 'exit 0'
done
false_one clang "echo '$bin'"
: >"$bin/libclang_rt.asan.a"
false_one valgrind 'exit 0'
false_one apt-get "echo \"\$*\" >>'$bin/calls'"
false_one sudo 'exit 1'
false_one id 'echo 0'
# Not the one that virtual machines are for.
false_one uname 'echo other'

setup() {
	: >"$bin/calls"
	out=$(PATH=$bin "$setup" "$@" 2>&1 </dev/null)
	status=$?
}

setup check
check "$status: $out" "0: "
check "$(cat "$bin/calls")" ""

rm "$bin/valgrind"
get="apt-get install -y --no-install-recommends"
setup run
check "$status: $out$(cat "$bin/calls")" "0: "
setup check
check "$status: $out" "0: wreath: packages are missing; this will run:
    apt-get -qq update
    env DEBIAN_FRONTEND=noninteractive $get valgrind
(NO_DEPS=1 turns this off.)
wreath: as root, run: apt-get install valgrind"
check "$(cat "$bin/calls")" "-qq update
install -y --no-install-recommends valgrind"

# No root, and no sudo without a question: one line, and only what a build
# needs makes it fail.
false_one id 'echo 1000'
setup check
check "$status: $out" "0: wreath: as root, run: apt-get install valgrind"
check "$(cat "$bin/calls")" ""
false_one cc 'exit 1'
setup run
check "$status: $out" \
	"1: wreath: as root, run: apt-get install libc6-dev libsodium-dev\
 libibverbs-dev librdmacm-dev"

# With sudo everything goes through it.
false_one sudo "[ \"\$1\" != -n ] || shift; echo \"sudo \$*\" >>'$bin/calls'"
false_one cc 'exit 0'
rm "$bin/make"
setup run
check "$(cat "$bin/calls")" "sudo true
sudo apt-get -qq update
sudo env DEBIAN_FRONTEND=noninteractive $get make"

# Another kind of system.
rm "$bin/apt-get"
setup run
check "$status: $out" "1: wreath: missing, by their names on Debian: make"
exit $failed
