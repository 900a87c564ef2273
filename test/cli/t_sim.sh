#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: `wreath sim` predicts what its fabric says, and refuses what says
# nothing.
# Method: fabrics by file and by options; results as table, CSV and JSON; texts
# and options with errors.
# shellcheck source=test/cli/expect.sh
. "$(dirname "$0")/expect.sh"

cat >"$dir/fabric" <<'END'
# Eight nodes of two ranks.
nodes 8
ranks_per_node 2
rail 400G 2us
nvlink 450GB/s 0.7us
END

expect 0 "$wreath" sim all_reduce -F "$dir/fabric" -b 1M:4M --algo ring,tree
shows out '^# .* sim all_reduce, 16 ranks on 8 nodes, flat$'
shows out '^#   rail 0 of each node: 400 Gb/s each way, 2 us$'
shows out '^ +1048576  ring  '
shows out '^ +4194304  tree  '
hides out 'split-ring'

# The same by options, and to the bit.
expect 0 "$wreath" sim all_reduce -F "$dir/fabric" -b 1M --csv
cp "$dir/out" "$dir/file.csv"
expect 0 "$wreath" sim all_reduce -n 16 --nodes 8 --rail 400G,2us \
	--nvlink 450GB/s,0.7us -b 1M --csv
cmp -s "$dir/out" "$dir/file.csv" || complain "options are not as the file"
# An option comes on top of the file.
expect 0 "$wreath" sim all_reduce -F "$dir/fabric" --rail 100G,2us -b 64M \
	--algo ring --csv
slow=$(sed -n 2p "$dir/out" | cut -d, -f6)
expect 0 "$wreath" sim all_reduce -F "$dir/fabric" -b 64M --algo ring --csv
fast=$(sed -n 2p "$dir/out" | cut -d, -f6)
awk -v slow="$slow" -v fast="$fast" 'BEGIN { exit !(slow > fast) }' ||
	complain "a rail of 100G is as fast as one of 400G"

# One row: the critical path.
expect 0 "$wreath" sim all_reduce -F "$dir/fabric" -b 1M --algo tree
shows out '^critical path, [0-9]+ steps: host .* latency .*credit'
shows out ' rank [0-9]+ lane [0-9]+ step [0-9]+: at the start'
shows out 'waited for a message of rank [0-9]+'

expect 0 "$wreath" sim all_reduce -F "$dir/fabric" -b 1M:2M --json
json "$dir/out" 'x["ranks"] == 16 and x["nodes"] == 8'
json "$dir/out" 'any(r["algo"] == "ring" and r["us"] > 0
	and 0 < r["utilisation"] <= 1 and 0 < r["bound_share"] <= 1
	for r in x["results"])'
json "$dir/out" 'any("has no form" in r.get("refused", "")
	for r in x["results"])'

# Every collective has some engine.
for collective in reduce broadcast reduce_scatter all_gather gather scatter \
	all_to_all; do
	expect 0 "$wreath" sim $collective -F "$dir/fabric" -b 1M --csv
	shows out "^$collective,16,8,[a-z-]+,1048576,[0-9]"
done

# Topologies, faults, folding.
expect 0 "$wreath" sim all_reduce --nodes 64 --rail 400G,2us -b 64M \
	--algo ring --topology spine-leaf,leaf,16,oversubscription,4
shows out ', spine-leaf$'
shows out 'steps of 16 ranks, .*the others being alike'
expect 0 "$wreath" sim all_reduce --nodes 64 --rail 400G,2us -b 64M \
	--algo ring --plain
shows out 'steps of 64 ranks'
expect 0 "$wreath" sim all_reduce --nodes 64 --rail 400G,2us -b 64M \
	--algo ring --slow link,node,5,rail,0,rate,50G
shows out '^ .* node 5 rail 0'
expect 0 "$wreath" sim all_reduce --nodes 4 --rail 400G,2us --rail 200G,2us \
	-b 64M --algo ring --lost link,node,1,rail,1
shows out 'rails that a node has lost are used by none'
hides out 'rail 1 of each node'

# 16384 ranks, and no waiting for them.
for algo in ring split-ring; do
	expect 0 "$wreath" sim all_reduce -n 16384 --nodes 2048 \
		--rail 400G,2us --nvlink 450GB/s,0.7us -b 1G --algo $algo
	shows out 'of 8 ranks, 1 pass, the others being alike'
done

if command -v gnuplot >/dev/null; then
	expect 0 "$wreath" sim all_reduce -F "$dir/fabric" -b 1M:16M \
		--plot "$dir/plot.svg"
	grep -q '</svg>' "$dir/plot.svg" || complain "no plot was drawn"
fi

printf 'nodes 8\nrail 400G -2us\n' >"$dir/wrong"
expect 6 "$wreath" sim all_reduce -F "$dir/wrong"
shows err "wrong:2:11: the latency '-2us' is negative"
printf 'nodse 8\n' >"$dir/wrong"
expect 6 "$wreath" sim all_reduce -F "$dir/wrong"
shows err "wrong:1:1: 'nodse' is no statement; did you mean nodes\?"
printf 'nodes 8\n\0' >"$dir/wrong"
expect 6 "$wreath" sim all_reduce -F "$dir/wrong"
shows err 'it is no text'
expect 6 "$wreath" sim all_reduce -F "$dir/none"
shows err 'cannot read .*none'
expect 6 "$wreath" sim all_reduce --nodes 4
shows err '4 nodes, and no rail between them'
expect 6 "$wreath" sim all_reduce --nodes 4 --rail 0,2us
shows err '--rail:1:6: the rate .0. is 0'
expect 6 "$wreath" sim all_reduce -n 16385 --rail 1G,1us
expect 6 "$wreath" sim all_reduce --nodes 4 --rail 1G,1us \
	--lost link,node,1,rail,0
shows err 'cuts node 1 off'
expect 6 "$wreath" sim all_reduce --nodes 4 --rail 1G,1us --algo tere
shows err "algo 'tere' is not one of: .*did you mean tree"
expect 6 "$wreath" sim all_reduce --nodes 4 --rail 1G,1us -b 4M:1M
expect 6 "$wreath" sim broadcast --nodes 4 --rail 1G,1us --root 4
expect 6 "$wreath" sim
shows err 'of which collective'
expect 6 "$wreath" sim allreduce
shows err 'did you mean all_reduce'
# Nothing but refusals: no result.
expect 1 "$wreath" sim all_reduce --nodes 4 --rail 1G,1us --algo direct
shows out 'has no form for all_reduce'
exit "$failed"
