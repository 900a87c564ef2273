#!/bin/sh
# SPDX-License-Identifier: MIT
#
# setup.sh run|test|check|peers: install the packages that are missing on
# Debian and its relatives, as root or by sudo, and say first what will be run.
# Silent, and without a look at the network, when nothing is missing.
#
# What a build needs must be there in the end.  What only a check or a
# comparison needs may be missing: it is then left out, and says so.
set -u
what=$1

has() {
	command -v "$1" >/dev/null 2>&1
}

# A header that the compiler finds, or would find if there were one.
has_header() {
	if has cc; then
		printf '#include <%s>\n' stdarg.h stddef.h stdint.h \
			setjmp.h "$1" | cc -E -x c - >/dev/null 2>&1
	else
		[ -e "/usr/include/$1" ]
	fi
}

needed_to_build() {
	has cc || echo gcc
	has ld || echo binutils
	has make || echo make
	has_header stdio.h || echo libc6-dev
	has_header sodium.h || echo libsodium-dev
	has_header infiniband/verbs.h || echo libibverbs-dev
	has_header rdma/rdma_cma.h || echo librdmacm-dev
}

needed_to_test() {
	has c++ || echo g++
	has_header cmocka.h || echo libcmocka-dev
	has pkg-config || echo pkg-config
}

# It belongs to the system's interpreter, which may not be the first.
has_pyverbs() {
	for python in /usr/bin/python3 python3; do
		"$python" -c 'import pyverbs' 2>/dev/null && return
	done
	return 1
}

# The sanitizers' runtime has the compiler's version in its name; it is a
# package of its own only where the archive says so.
clang_runtime() {
	ls "$(clang -print-runtime-dir)"/libclang_rt.asan*.a >/dev/null 2>&1 &&
		return
	name=libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev
	apt-cache show "$name" >/dev/null 2>&1 && echo "$name"
}

wanted_to_check() {
	has git || echo git
	has clang && clang_runtime
	has clang || echo clang
	has cppcheck || echo cppcheck
	has shellcheck || echo shellcheck
	has mandoc || echo mandoc
	has valgrind || echo valgrind
	has gnuplot || echo gnuplot-nox
	wanted_of_machine
	wanted_of_judges
	wanted_of_peers
}

# Programs that were not written here, and take the soft device for another.
wanted_of_judges() {
	has ibv_devinfo || echo ibverbs-utils
	has ib_write_bw || echo perftest
	has ucx_perftest || echo ucx-utils
	has_pyverbs || echo python3-pyverbs
	has_header gloo/config.h || echo libgloo-dev
}

# The virtual machine with soft-RoCE; the judges are there, too.
wanted_of_machine() {
	[ "$(uname -m)" = x86_64 ] || return 0
	has qemu-system-x86_64 || echo qemu-system-x86
	has busybox && busybox --list | grep -q -x depmod ||
		echo busybox-static
	has rdma || echo iproute2
	[ -d /usr/lib/x86_64-linux-gnu/libibverbs ] || echo ibverbs-providers
	has rping || echo rdmacm-utils
}

wanted_of_peers() {
	has mpirun.openmpi || echo openmpi-bin
	has mpicc.openmpi || echo libopenmpi-dev
	has mpirun.mpich || echo mpich
	has mpicc.mpich || echo libmpich-dev
}

needed() {
	needed_to_build
	case $what in
	test | check) needed_to_test ;;
	peers) has c++ || echo g++ ;;
	esac
}

missing() {
	needed
	case $what in
	check) wanted_to_check ;;
	peers)
		wanted_of_peers
		has_header gloo/config.h || echo libgloo-dev
		;;
	esac
}

one_line() {
	tr '\n' ' ' | sed 's/ *$//'
}

# Sets @as: how to become root, "" for root itself.
may_install() {
	has apt-get || return 1
	as=
	[ "$(id -u)" != 0 ] || return 0
	as="sudo "
	has sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; }
}

install() {
	update="${as}apt-get -qq update"
	get="${as}env DEBIAN_FRONTEND=noninteractive"
	get="$get apt-get install -y --no-install-recommends $1"
	echo "wreath: packages are missing; this will run:"
	echo "    $update"
	echo "    $get"
	echo "(NO_DEPS=1 turns this off.)"
	# What cannot be updated may still be installed from what is known.
	$update
	$get >/dev/null
}

list=$(missing | one_line)
[ -n "$list" ] || exit 0

if may_install; then
	# The second time for what was named after what the first time brought.
	install "$list"
	again=$(missing | one_line)
	[ -z "$again" ] || [ "$again" = "$list" ] || install "$again"
	list=$(missing | one_line)
	[ -n "$list" ] || exit 0
fi
if has apt-get; then
	echo "wreath: as root, run: apt-get install $list" >&2
else
	echo "wreath: missing, by their names on Debian: $list" >&2
fi
[ -z "$(needed)" ]
