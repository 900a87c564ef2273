#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: `wreath plan` computes what a hand computes.
# Method: a job whose figures are known: 70e9 parameters of 2 bytes on 8 x 8 x
# 16 ranks; machines on which one number alone counts; and what makes no sense.
# shellcheck source=test/cli/expect.sh
. "$(dirname "$0")/expect.sh"

job=(--params 70e9 --bytes 2 --tp 8 --pp 8 --dp 16 --step-ms 500 --overlap 0.7
	--nic 400G)
expect 0 "$wreath" plan "${job[@]}"
# 140 GB / 64, then 2 x 15/16 of it, within 0.7 x 0.5 s.
shows out '^gradient +2\.188 GB a rank, in 84 buckets of 25M$'
shows out '^traffic +4\.102 GB a rank'
shows out '^to be hidden in +350 ms'
shows out '^needed bandwidth +11\.72 GB/s a rank'
shows out ': 1024 ranks$'
shows out '^placement +1 of 8 ranks a node .* 16 nodes$'
shows out '^InfiniBand: 48 GB/s a rank, 2\.70 us'
shows out '^RoCEv2: 47\.36 GB/s a rank, 3\.50 us'
shows out '^in one node: 450 GB/s'
shows out '^\* '

json=("$wreath" plan --json)
expect 0 "${json[@]}" "${job[@]}"
json "$dir/out" 'x["gradient_bytes"] == 2187500000'
json "$dir/out" 'x["traffic_bytes"] == 4101562500'
json "$dir/out" 'abs(x["window_s"] - 0.35) < 1e-9'
json "$dir/out" 'abs(x["needed_bytes_per_s"] - 4101562500 / 0.35) < 100'
json "$dir/out" '[f["name"] for f in x["fabrics"]] == ["ib", "roce", "node"]'
json "$dir/out" 'all(abs(e["hidden_s"] + e["exposed_s"] - e["total_s"]) < 1e-6
	for f in x["fabrics"] for e in f["engines"])'
json "$dir/out" 'all(f["best"] == min(f["engines"],
	key=lambda e: e["exposed_s"])["name"] for f in x["fabrics"])'

# A machine of nothing but ports: two ranks, one bucket of 1 GiB of gradient.
two='for e in x["fabrics"][0]["engines"] if e["name"] in ("ring", "twoshot")'
# Each engine moves 2 x 1/2 x 2^30 bytes at 50 GB/s: 21.47 ms, all of it exposed
# since the only bucket is full when the backward pass ends.
bare=(--dp 2 --dp-per-node 1 --efficiency 1 --ib-latency 0ns --memory 1000TB
	--slot 1G --bucket 1G --params 536870912 --bytes 2)
expect 0 "${json[@]}" "${bare[@]}" --step-ms 1000 --fabric ib
json "$dir/out" 'all(abs(e["total_s"] - 2**30 / 50e9) < 2e-5
	'"$two)"
json "$dir/out" 'all(abs(e["exposed_s"] - e["total_s"]) < 1e-9
	for e in x["fabrics"][0]["engines"])'
# In 8 buckets over 0.67 s only the last one is exposed.
expect 0 "${json[@]}" "${bare[@]}" --step-ms 1000 --fabric ib --bucket 128M
json "$dir/out" 'all(abs(e["exposed_s"] - 2**27 / 50e9) < 2e-5
	'"$two)"
# A step of 10 ms hides 6.7 ms at most; 14.77 + 1/8 of 6.7 are left.
expect 1 "${json[@]}" "${bare[@]}" --step-ms 10 --fabric ib --bucket 128M
json "$dir/out" 'all(abs(e["exposed_s"] - 2**30 / 50e9 + 0.0067 * 7 / 8) < 2e-5
	'"$two)"

# What would suffice does suffice, and one less does not.
slow=(--params 70e9 --tp 8 --pp 8 --dp 16 --step-ms 500 --fabric ib)
expect 1 "${json[@]}" "${slow[@]}" --nic 50G
json "$dir/out" 'not x["fabrics"][0]["suffices"]'
expect 1 "$wreath" plan "${slow[@]}" --nic 50G
shows out 'does not suffice: '
rails=$(sed -n 's/^ *--rails \([0-9]*\) instead of 8$/\1/p' "$dir/out")
nic=$(sed -n 's/^ *--nic \([0-9]*G\)$/\1/p' "$dir/out")
step=$(sed -n 's/^ *a step of \([0-9]*\) ms$/\1/p' "$dir/out")
if [ -n "$rails" ] && [ -n "$nic" ] && [ -n "$step" ]; then
	expect 0 "$wreath" plan "${slow[@]}" --nic 50G --rails "$rails"
	expect 1 "$wreath" plan "${slow[@]}" --nic 50G --rails $((rails - 1))
	expect 0 "$wreath" plan "${slow[@]}" --nic "$nic"
	expect 0 "$wreath" plan "${slow[@]}" --nic 50G --step-ms $((step + 1))
else
	complain "no advice: rails '$rails', nic '$nic', step '$step'"
fi

# Pure data parallelism: 280 GB a rank, which no port of today hides.
expect 1 "$wreath" plan --params 70e9 --dp 1024 --step-ms 500 --overlap 0.3
shows out '^needed bandwidth +1\.865 TB/s'
shows out 'no number of rails does'
shows out 'no NIC does'

expect 0 "$wreath" plan --params 7e9 --tp 1 --dp 8 --step-ms 900
shows out 'not used: all replicas are in one node'
expect 0 "$wreath" plan --sources
shows out '^--roce-latency +3\.5us +assumed'
shows out '^--nvlink +450GB '
expect 0 "$wreath" help plan
shows out '^usage: wreath plan '

# refuses ARGUMENT... REASON
refuses() {
	local why=${*: -1}
	expect 6 "$wreath" plan "${@:1:$#-1}"
	shows err "$why"
}
refuses 'params is needed'
refuses --params 1e9 'dp is needed'
refuses --params 1e9 --dp 4 'step-ms is needed'
refuses --params many "--params 'many' is not a number from 1 to"
refuses --params 1e99 'is not a number from 1 to 1000000000000000$'
refuses --params nan "--params 'nan' is not a number"
refuses --dp 1 "--dp '1' is not a whole number from 2 to 16384"
refuses --tp 0 "--tp '0' is not a whole number from 1 to"
refuses --bytes 9 "--bytes '9' is not a number from 1 to 8"
refuses --overlap 2 "--overlap '2' is not a number from 0 to 1"
refuses --params 1e9 --dp 4 --step-ms 1 --overlap 0 'overlap is 0'
refuses --params 1e9 --dp 4 --step-ms 1 --nic 400 "--nic '400' is not a rate"
refuses --params 1e9 --dp 4 --step-ms 1 --nic -4G "--nic '-4G' is not a rate"
refuses --params 1e9 --dp 4 --step-ms 1 --ib-latency 5 'is not a time'
refuses --params 1e9 --dp 4 --step-ms 1 --roce-latency 2s 'from 0ns to 1s'
refuses --params 1e9 --dp 4 --step-ms 1 --dp-per-node 9 'more than the 8 ranks'
refuses --fabric ibx "--fabric 'ibx' is not one of: ib roce node all.*did you"
refuses --bucket 10 "--bucket '10' is not a size from 1024"
refuses --parms 1 'did you mean --params'
refuses 70e9 "'70e9' is no option"
exit "$failed"
