# SPDX-License-Identifier: MIT
# The rows of wreath perf --csv, then those of wreath sim --csv: one line for
# each size that both have.  Columns are found by their names.

FNR == 1 { files++ }

$1 == "version" || $1 == "collective" {
	for (i = 1; i <= NF; i++)
		at[$i] = i
	next
}

files == 1 { measured[$at["bytes"]] = $at[stat] }

files == 2 && ($at["bytes"] in measured) && $at["us"] != "" {
	have = measured[$at["bytes"]]
	printf "  %5d  %-10s  %10d  %12.1f  %12.1f  %7.1f\n", n, algo,
		$at["bytes"], have, $at["us"],
		100 * ($at["us"] - have) / have
}
