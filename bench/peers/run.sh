#!/bin/bash
# SPDX-License-Identifier: MIT
#
# run.sh BUILD: measure collectives of MPI, Gloo and wreath in turn, compare.
# BUILD/wreath is there already.  README.md beside this file explains it all.
#
#   RANKS="2 4 8"   SIZES="8 1024 ..." in bytes   ROUNDS=3
#   COLLECTIVES="all_reduce all_gather reduce_scatter broadcast all_to_all"
#   PEERS="openmpi openmpi-ucx mpich gloo"   DURATION=0.2 seconds a measurement
#   TOUCH=1 writes the input before each operation
set -u
here=$(dirname "$0")
build=$1
out=$build/peers
collectives=${COLLECTIVES:-all_reduce}
ranks=${RANKS:-2 4 8}
sizes=${SIZES:-8 1024 65536 1048576 16777216}
rounds=${ROUNDS:-3}
peers=${PEERS:-openmpi openmpi-ucx mpich gloo}
duration=${DURATION:-0.2}
touch=${TOUCH:-0}

# Temporaries of 16 MB and more are mapped and unmapped by malloc() for each
# operation of a peer unless it is told to keep them.
export MALLOC_MMAP_THRESHOLD_=4294967296
export MALLOC_TRIM_THRESHOLD_=8589934592
export MALLOC_TOP_PAD_=268435456

say() {
	echo "bench-peers: $*" >&2
}

check_numbers() {
	local name=$1 number
	shift
	for number in "$@"; do
		case $number in
		'' | *[!0-9]*)
			say "$name: '$number' is not a whole number"
			exit 6
			;;
		esac
	done
}

# must_make TARGET SOURCE...: the target has to be made.
must_make() {
	local target=$1 source
	shift
	for source in "$@"; do
		[ "$target" -nt "$source" ] || return 0
	done
	return 1
}

build_peer() {
	local program=$out/$1
	case $1 in
	openmpi | mpich)
		must_make "$program" "$here/mpi.c" "$here/measure.h" ||
			return 0
		"mpicc.$1" -O2 "$here/mpi.c" -o "$program"
		;;
	gloo)
		must_make "$program" "$here/gloo.cc" "$here/measure.h" ||
			return 0
		c++ -O2 -std=c++14 "$here/gloo.cc" -lgloo -pthread \
			-o "$program"
		;;
	*)
		echo "there is no such peer"
		return 1
		;;
	esac
}

# A core for each rank where there are enough, as `wreath perf` does.
binding() {
	[ "$1" -le "$(nproc)" ] && echo core || echo none
}

open_mpi() {
	local n=$1 options=(--oversubscribe --bind-to "$(binding "$1")")
	shift
	[ "$(id -u)" != 0 ] || options+=(--allow-run-as-root)
	# shellcheck disable=SC2086
	timeout -k 5 600 mpirun.openmpi "${options[@]}" "$@" -n "$n" \
		"$out/openmpi" "$collective" "$duration" "$touch" $sizes
}

# measure PEER RANKS: lines "BYTES MICROSECONDS" on standard output.
measure() {
	local store status
	case $1 in
	openmpi) open_mpi "$2" ;;
	openmpi-ucx)
		open_mpi "$2" --mca pml ucx --mca opal_common_ucx_tls any \
			--mca opal_common_ucx_devices any
		;;
	mpich)
		# shellcheck disable=SC2086
		timeout -k 5 600 mpirun.mpich -bind-to "$(binding "$2")" -n "$2" \
			"$out/mpich" "$collective" \
			"$duration" "$touch" $sizes
		;;
	gloo)
		store=$out/store
		rm -rf "$store" && mkdir "$store" || return
		# shellcheck disable=SC2086
		timeout -k 5 600 "$build/wreath" run --no-prefix -n "$2" \
			"$out/gloo" "$collective" "$store" "$duration" \
			"$touch" $sizes
		status=$?
		rm -rf "$store"
		return $status
		;;
	esac
}

# As measure, with the algorithm behind.
measure_wreath() {
	local options=(-q --place out --seconds "$duration" --csv -)
	[ "$touch" = 0 ] || options+=(--touch)
	# shellcheck disable=SC2086
	timeout -k 5 600 "$build/wreath" perf "$collective" -g "$1" \
		"${options[@]}" --buffers "${BUFFERS:-alloc}" \
		--sizes "$(echo $sizes | tr ' ' ,)" >"$out/wreath.csv" ||
		return
	awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
		NR > 1 { print $at["bytes"], $at["avg_us"], $at["algo"] }' \
		"$out/wreath.csv"
}

last_words() {
	grep -v '^[[:space:]]*$' "$1" | tail -n 1 | cut -c 1-200
}

# One measurement of one library; a peer that fails is left out from then on.
take() {
	local peer=$1 n=$2 round=$3 lines line
	if [ "$peer" = wreath ]; then
		lines=$(measure_wreath "$n" 2>"$out/log") || {
			say "wreath fails with $n ranks: $(last_words \
				"$out/log")"
			exit 1
		}
	else
		case $left_out in *" $peer/$n "*) return ;; esac
		lines=$(measure "$peer" "$n" 2>"$out/log") || {
			say "$peer fails with $n ranks, and is left out there:" \
				"$(last_words "$out/log")"
			left_out="$left_out$peer/$n "
			return
		}
	fi
	while read -r line; do
		echo "$collective $peer $n $round $line"
	done <<<"$lines" >>"$out/raw"
}

check_collectives() {
	local name
	for name in "$@"; do
		case $name in
		all_reduce | all_gather | reduce_scatter | broadcast | \
			all_to_all) ;;
		*)
			say "COLLECTIVES: '$name' is none that is measured here"
			exit 6
			;;
		esac
	done
}

# Sizes of which each block has an element; all_sizes RANKS.
block_sizes() {
	local size
	for size in $all_sizes; do
		[ "$size" -ge $((4 * $1)) ] && echo "$size"
	done
}

# One turn of all libraries.
turn() {
	local n=$1 round=$2 peer
	case $collective in
	all_reduce | broadcast) sizes=$all_sizes ;;
	*) sizes=$(block_sizes "$n") ;;
	esac
	[ -n "$sizes" ] || return
	for peer in $ready wreath; do
		[ ! -t 2 ] || printf '\r\033[K%s' \
			"round $round: $collective, $peer, $n ranks ..." >&2
		take "$peer" "$n" "$round"
	done
}

# shellcheck disable=SC2086
{
	check_collectives $collectives
	check_numbers RANKS $ranks
	check_numbers SIZES $sizes
	check_numbers ROUNDS $rounds
}
mkdir -p "$out" || exit 1
left_out=' '
ready=
for peer in $peers; do
	if build_peer "${peer%-ucx}" >"$out/log" 2>&1; then
		ready="$ready $peer"
	else
		say "$peer cannot be built, and is left out:" \
			"$(last_words "$out/log")"
	fi
done
[ -n "$ready" ] || { say "there is no peer to compare with"; exit 77; }

: >"$out/raw"
all_sizes=$sizes
for round in $(seq "$rounds"); do
	for collective in $collectives; do
		for n in $ranks; do
			turn "$n" "$round"
		done
	done
done
[ ! -t 2 ] || printf '\r\033[K' >&2

echo "float32, sum, out of place, $rounds rounds of $duration s; medians in us"
[ "$touch" = 0 ] || echo "the input is written before each operation"
echo
awk -v json="$build/bench-peers.json" -f "$here/compare.awk" "$out/raw"
