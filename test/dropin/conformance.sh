#!/bin/bash
# SPDX-License-Identifier: MIT
#
# conformance.sh [B]: rdma-core's own tests on the soft device, through the
# drop-in in B/soft, and on the kernel's soft-RoCE in a virtual machine; both
# lists side by side, and the differences with their reasons from the file
# `differences`.  Writes B/conformance.json: {"test": {"soft": "pass|fail|skip",
# "rxe": ...}}.
#
# Fails where the soft device fails a test, and for a difference without a
# reason; a reason without a difference is reported.  77: the suite or the
# machine cannot be had here; what ran is judged and printed all the same.
#
# On the soft device the suite runs with both personalities: a test fails if it
# fails with either, and passes if it passes with one and fails with none.
# RXE_LIST names a list that is there already, in place of the machine's.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${1:-build}
dir=$build/conformance
rm -rf "$dir"
mkdir -p "$dir" || exit 1
[ -e "$build/soft/libibverbs.so.1" ] || { echo "no drop-in"; exit 77; }

for kind in roce ib; do
	WREATH_SOFT=$kind:1 LD_LIBRARY_PATH=$PWD/$build/soft \
		test/dropin/pyverbs.sh "$dir/$kind" || exit
done

list=${RXE_LIST:-}
missing=
if [ -z "$list" ]; then
	# The machine's only folder that is ours as well.
	# shellcheck disable=SC2016
	test/vm/vm.sh -n conformance -t 400 \
		'test/dropin/pyverbs.sh "$VM_OUT/list" rxe0 1' >"$dir/vm" 2>&1
	status=$?
	list=build/vm/conformance/list
	if [ $status = 77 ]; then
		missing=$(tail -n 1 "$dir/vm")
		list=/dev/null
	elif [ $status != 0 ]; then
		echo "the suite did not run on rxe (status $status):"
		tail -n 20 "$dir/vm"
		exit 1
	fi
fi

awk -v json="$build/conformance.json" -v missing="$missing" '
	FNR == 1 { part++ }
	FILENAME ~ /differences$/ {
		if (/^#/ || NF < 2)
			next
		name = $1
		sub(/^[^ ]* /, "")
		reason[name] = $0
		next
	}
	{ names[$1] }
	FILENAME ~ /\/(roce|ib)$/ {
		if ($2 == "fail" || !($1 in soft) ||
		    (soft[$1] == "skip" && $2 == "pass")) {
			soft[$1] = $2
			why[$1] = substr($0, index($0, "\t") + 1)
		}
		next
	}
	{ rxe[$1] = $2 }
	function show(verdict) {
		return verdict == "" ? "-" : verdict
	}
	# A test that did not run to its end has no verdict.
	function told(verdict) {
		return verdict == "-" ? "fail" : verdict
	}
	END {
		n = 0
		for (name in names) {
			# Insertion, since not every awk can sort.
			for (i = n++; i > 0 && sorted[i] > name; i--)
				sorted[i + 1] = sorted[i]
			sorted[i + 1] = name
		}
		printf "%-6s%-6s%s\n", "soft", "rxe", "test"
		printf "{" >json
		for (i = 1; i <= n; i++) {
			name = sorted[i]
			s = show(soft[name])
			r = show(rxe[name])
			printf "%-6s%-6s%s\n", s, r, name
			line = "\"" name "\": {\"soft\": \"" told(s) "\""
			if (!missing)
				line = line ", \"rxe\": \"" told(r) "\""
			printf "%s\n%s", comma, line >json
			comma = ","
			printf "}" >json
			n_of["soft " s]++
			n_of["rxe " r]++
		}
		print "\n}" >json

		for (i = 1; i <= n; i++) {
			name = sorted[i]
			if (soft[name] != "fail" && soft[name] != "")
				continue
			printf "\nFAILED on the soft device: %s: %s\n", name,
				why[name]
			bad++
		}
		if (!missing)
			print "\ndifferences:"
		for (i = 1; i <= n && !missing; i++) {
			name = sorted[i]
			if (soft[name] == rxe[name]) {
				if (name in reason)
					printf "no difference any more: %s\n",
						name
				continue
			}
			if (!(name in reason)) {
				reason[name] = "WITHOUT A REASON"
				bad++
			}
			printf "%-6s%-6s%s: %s\n", show(soft[name]),
				show(rxe[name]), name, reason[name]
		}
		for (name in reason)
			if (!(name in names))
				printf "no such test: %s\n", name
		printf "\nsoft: %d pass, %d fail, %d skip; ",
			n_of["soft pass"], n_of["soft fail"] + n_of["soft -"],
			n_of["soft skip"]
		if (missing)
			printf "rxe: %s\n", missing
		else
			printf "rxe: %d pass, %d fail, %d skip\n",
				n_of["rxe pass"],
				n_of["rxe fail"] + n_of["rxe -"],
				n_of["rxe skip"]
		exit (bad > 0 || n == 0)
	}' test/dropin/differences "$dir/roce" "$dir/ib" "$list" || exit 1
[ -z "$missing" ] || exit 77
