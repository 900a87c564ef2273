#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: `wreath info` shows the devices and every setting with its source, and
# never a secret.
# Method: the soft device in both personalities; variables set, unset, wrong.
# shellcheck source=test/cli/expect.sh
. "$(dirname "$0")/expect.sh"

export WREATH_SOFT=roce:1,ib:1
expect 0 "$wreath" info
shows out '^wreath [0-9.]+ on .*, [0-9]+ cores, [a-z0-9]+ kernels$'
shows out '^  libibverbs: none|\(libibverbs\)'
shows out '^  soft0 \(soft\)'
shows out '^  WREATH_CONNECT=cm: librdmacm can'
shows out '^    port 1: active, Ethernet, .*MTU [0-9]+'
shows out '^    port 1: active, InfiniBand, .*LID [0-9]+'
shows out '^      GID 0: [0-9a-f:]+/64, RoCE v2: chosen$'
shows out '^      GID 0: [0-9a-f:]+/64, IB: chosen$'
shows out '^  WREATH_TIMEOUT +30s +\(default\) '
shows out '^  WREATH_SOFT +roce:1,ib:1 +\(environment\) '
# Every variable of the table, and nothing else.
names=$(grep -o '{"WREATH_[A-Z_]*"' lib/base/env.c 2>/dev/null |
	tr -dc 'A-Z_\n' | sort)
shown=$(sed -n 's/^  \(WREATH_[A-Z_]*\) .*/\1/p' "$dir/out" | sort)
[ -z "$names" ] || [ "$names" = "$shown" ] ||
	complain "the settings are not the table's"

expect 0 "$wreath" info --json
json "$dir/out" '[s["source"] for s in x["sources"]] ==
	["libibverbs", "soft"]'
json "$dir/out" '{p["link_layer"] for d in x["sources"][1]["devices"]
	for p in d["ports"]} == {"Ethernet", "InfiniBand"}'
json "$dir/out" '{s["name"]: (s["value"], s["source"])
	for s in x["settings"]}["WREATH_SOFT"] ==
	("roce:1,ib:1", "environment")'
json "$dir/out" 'all(s["help"] for s in x["settings"])'
json "$dir/out" 'x["librdmacm"]["error"] is None or
	"librdmacm" in x["librdmacm"]["error"]'
json "$dir/out" '{(g["verdict"], g["prefix"], g["interface"])
	for d in x["sources"][1]["devices"] for p in d["ports"]
	for g in p["gids"]} == {("chosen", 64, "")}'
WREATH_GID_INDEX=3 expect 0 "$wreath" info
shows out '^      GID 0: [0-9a-f:]+/64, RoCE v2: WREATH_GID_INDEX demands'

WREATH_PKEY=5 expect 0 "$wreath" info
shows out '^      refused: WREATH_PKEY=5 is not in the table'
shows out '^      GID 0: .*: the port is refused'
WREATH_HCA=mlx5_0,soft0:2 expect 0 "$wreath" info
shows out '^      refused: WREATH_HCA=mlx5_0,soft0:2 does not name it'
WREATH_HCA=mlx5_0,soft0:1,soft1 expect 0 "$wreath" info
hides out '^      refused'

WREATH_COMM_ID=$(printf 'ab%.0s' {1..128})
export WREATH_COMM_ID
expect 0 "$wreath" info
hides out abababab
shows out '^  WREATH_COMM_ID +\(hidden\) +\(environment\)'
expect 0 "$wreath" info --json
hides out abababab
unset WREATH_COMM_ID

# Without CUDA a sentence says so.
WREATH_GPU=off expect 0 "$wreath" info
shows out '^  none: .*WREATH_GPU=off'
WREATH_GPU=off expect 0 "$wreath" info --json
json "$dir/out" '"WREATH_GPU=off" in x["gpus"]["error"] and
	x["gpus"]["gpus"] == []'

WREATH_SOFT=off expect 0 "$wreath" info
shows out '^  soft: none: .'
WREATH_TIMEOUT=yesterday expect 1 "$wreath" info
shows err "WREATH_TIMEOUT='yesterday'"
exit "$failed"
