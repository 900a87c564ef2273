#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: the examples do what they say, however they are started.  Method: each
# is run alone, by `wreath run` and by each mpirun there is, and what it writes
# is read; then they are built by their own Makefile with a pkg-config file
# that leads to this build.
set -u
programs=$BUILD/examples
made=$(mktemp -d) || exit 1
trap 'rm -rf "$made"' EXIT
failed=0

fault() {
	echo "$*"
	failed=1
}

# lines N PATTERN COMMAND...: it succeeds, and N of its lines match.
lines() {
	local n=$1 pattern=$2 out found
	shift 2
	out=$(timeout 60 "$@" 2>&1) || fault "exit status $? of: $*"
	found=$(grep -c -e "$pattern" <<<"$out")
	[ "$found" = "$n" ] || fault "$found lines of $n have '$pattern'," \
		"from: $*"$'\n'"$out"
}

# all N COMMAND...: every example, started as N ranks by the command.
all() {
	local n=$1 hello
	shift
	for hello in 01_hello 02_hello; do
		# Rank r gives r, r + 10, r + 20 and r + 30.
		lines "$n" "of $n on .*the sums are$(sums "$n")\$" "$@" \
			"$programs/$hello"
	done
	lines 1 'largest difference' "$@" "$programs/03_train"
	lines 3 "$n ranks*, .* in 4 buckets$\\|: .* ms$" "$@" \
		"$programs/04_buckets"
	lines 1 "$n ranks*: *loss .* 146 of 150 right" "$@" \
		"$programs/03_train"
	[ -x "$programs/05_gpu" ] || return
	LD_LIBRARY_PATH=$BUILD/cuda lines "$n" \
		"of $n on .*: 5 averages of 1024 KiB are right\$" "$@" \
		"$programs/05_gpu"
}

sums() {
	local i
	for i in 0 10 20 30; do
		printf ' %d' $(($1 * ($1 - 1) / 2 + $1 * i))
	done
}

all 1
all 3 "$WREATH" run -n 3
# As root and with more ranks than cores, Open MPI wants to be told.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for launcher in "mpirun.openmpi --oversubscribe" mpirun.mpich; do
	if command -v "${launcher%% *}" >/dev/null; then
		# shellcheck disable=SC2086
		all 3 $launcher -n 3
	else
		echo "no ${launcher%% *}: left out"
	fi
done

# Data that is not there, or is not what it should be.
(cd "$made" && ! "$programs/03_train" 2>err && grep -q iris.txt err) ||
	fault "03_train does not miss its data"
"$programs/03_train" LICENSE 2>/dev/null && fault "03_train reads anything"

if command -v pkg-config >/dev/null; then
	cp examples/*.c* examples/Makefile examples/iris.txt "$made"
	cat >"$made/wreath.pc" <<-END
		Name: wreath
		Description: this build
		Version: 0
		Cflags: -I$PWD/include
		Libs: -L$BUILD -Wl,-rpath,$BUILD -lwreath
	END
	if PKG_CONFIG_PATH=$made MAKEFLAGS='' "${MAKE:-make}" -s -C "$made" \
		CC="${CC:-cc}" CXX="${CXX:-c++}" \
		LDFLAGS="${SAN:+-fsanitize=$SAN}"; then
		programs=$made
		all 2 "$WREATH" run -n 2
	else
		fault "examples/Makefile fails"
	fi
fi
exit $failed
