#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: a tuning file decides, is refused where it is wrong, and the machine is
# measured where it is none of plain soft ports.
# Method: `wreath perf` with JSON, which names the algorithm of each size.
# shellcheck source=test/cli/expect.sh
. "$(dirname "$0")/expect.sh"

file=$dir/tuning
perf=("$wreath" perf all_reduce -g 4 -b 8 -e 64K -f 8192 -n 1 -w 0)
export WREATH_TUNING=$file

# names ALGO8 ALGO64K: what ran for 8 bytes and for 64 KiB.
names() {
	expect 0 "${perf[@]}" --json "$dir/json"
	json "$dir/json" '[r["algo"] for r in x["results"]][1:3] ==
	["'"$1"'", "'"$2"'"]'
}

echo 'all_reduce bytes 64K algo ring' >"$file"
names oneshot ring
printf '# all\nany ranks 2-4 nodes 1 algo tree # of them\n' >"$file"
names tree tree
echo 'all_reduce ranks 5- algo ring' >"$file"
names oneshot twoshot

# refuses TEXT REASON
refuses() {
	printf '%s\n' "$1" >"$file"
	run "${perf[@]}"
	[ "$status" != 0 ] || complain "accepted: $1"
	shows err "$2"
}
refuses 'all_reduce algo rnig' "tuning:1:17: 'rnig' is no .*ring"
refuses 'al_reduce algo ring' 'tuning:1:1: .*did you mean all_reduce'
refuses 'latency rail 9 5us' "tuning:1:14: rail '9' is not a number"
rm "$file"
run "${perf[@]}"
[ "$status" != 0 ] || complain "no file, no error"
shows err "WREATH_TUNING: the file '.*' cannot be opened"

# Ranks that have files of their own.
for rank in 0 1; do
	echo "all_reduce algo ring # $rank" >"$dir/tuning.$rank"
done
unset WREATH_TUNING
# shellcheck disable=SC2016
run "$wreath" run -n 2 --timeout 30 sh -c \
	'WREATH_TUNING=$1.$WREATH_RANK exec "$2" perf all_reduce' sh \
	"$file" "$wreath"
[ "$status" != 0 ] || complain "two files, no error"
shows err "the hash of WREATH_TUNING's file is"

# Two paced rails between two nodes.
export WREATH_SOFT=roce:1@2G+20us,roce:1@1G+30us WREATH_LOG=info
expect 0 "${perf[@]}" --nodes 2
shows err 'rail 0: 20\.00 us a message, 0\.250 GB/s'
shows err 'rail 1: 30\.00 us a message, 0\.125 GB/s'
# The model takes the file's word for them.
printf 'latency rail 0 70ms\nlatency rail 1 70ms\n' >"$file"
WREATH_TUNING=$file expect 0 "${perf[@]}" --nodes 2 --json "$dir/json"
json "$dir/json" 'all(min(r["predicted_us"].values()) > 70000
	for r in x["results"] if r["bytes"])'
exit "$failed"
