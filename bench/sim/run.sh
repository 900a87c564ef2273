#!/bin/bash
# SPDX-License-Identifier: MIT
#
# run.sh BUILD: measure real ranks on soft ports that have a rate and a latency,
# predict the same by the simulator, and compare.  BUILD/wreath is there
# already.  README.md beside this file explains it.
#
#   RANKS="2 4 8 16"  SIZES="1048576 4194304"  RATE=1G  LATENCY=50us
#   ALGOS="ring twoshot tree split-ring halving"  COLLECTIVE=all_reduce
#   OVERHEAD=10us     a message costs each end, on this machine
#   ITERS=9           of each row; STAT=p50_us or another column of the CSV
#   WITHIN=15         percent that a prediction may be off
#   SECONDS_MAX=300   for all of it
set -u
build=$1
here=$(dirname "$0")
ranks=${RANKS:-2 4 8 16}
sizes=${SIZES:-1048576 4194304}
algos=${ALGOS:-ring twoshot tree split-ring halving}
collective=${COLLECTIVE:-all_reduce}
rate=${RATE:-1G}
latency=${LATENCY:-50us}
overhead=${OVERHEAD:-10us}
iters=${ITERS:-9}
stat=${STAT:-p50_us}
within=${WITHIN:-15}
seconds=${SECONDS_MAX:-300}
slot_bytes=65536
slots=4
end=$((SECONDS + seconds))
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
: >"$tmp/all"

export WREATH_SOFT=roce:1@$rate+$latency WREATH_HCA=soft0
export WREATH_SLOT_BYTES=$slot_bytes WREATH_SLOTS=$slots

measure() {
	# shellcheck disable=SC2086
	timeout -k 5 60 "$build/wreath" perf "$collective" -g "$1" \
		--algo "$2" --sizes "$(echo $sizes | tr ' ' ,)" --place out \
		-n "$iters" -w 1 -c 1 -q --csv - 2>"$tmp/err"
}

predict() {
	local size
	for size in $sizes; do
		"$build/wreath" sim "$collective" -n "$1" --ports per_rank \
			--rail "$rate,$latency" --overhead "$overhead" \
			--slot_bytes $slot_bytes --slots $slots \
			--algo "$2" -b "$size" --csv || return
	done 2>"$tmp/err"
}

echo "# $collective on soft ports of $rate bit/s and $latency, $slots slots of\
 $slot_bytes bytes, $overhead a message"
printf '# %5s  %-10s  %10s  %12s  %12s  %7s\n' ranks algo bytes \
	'measured us' 'predicted us' 'off %'
for n in $ranks; do
	for algo in $algos; do
		if [ $SECONDS -ge $end ]; then
			echo "# the time of $seconds s is over"
			break 2
		fi
		if ! measure "$n" "$algo" >"$tmp/measured" ||
			! predict "$n" "$algo" >"$tmp/predicted"; then
			echo "# $n ranks, $algo: $(tail -n 1 "$tmp/err")"
			continue
		fi
		awk -F, -v n="$n" -v algo="$algo" -v stat="$stat" -f "$here/compare.awk" \
			"$tmp/measured" "$tmp/predicted" | tee -a "$tmp/all"
	done
done
awk -v within="$within" '
	{ off = $NF < 0 ? -$NF : $NF; rows++; sum += off; wide += off > within }
	off > worst { worst = off }
	END {
		if (!rows) {
			print "# nothing was measured"
			exit 1
		}
		printf "# %d rows: off by %.1f %% in the mean, %.1f %% at worst; "\
			"%d by more than %d %%\n", rows, sum / rows, worst,
			wide, within
		exit wide > 0
	}' "$tmp/all"
