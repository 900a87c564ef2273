# SPDX-License-Identifier: MIT
# Lines "COLLECTIVE LIBRARY RANKS ROUND BYTES MICROSECONDS [ALGORITHM]" to a
# table of medians and ratios, and to the JSON file @json.

{
	key = $1 " " $3 " " $5
	us[$2, key, $4] = $6
	if ($2 == "wreath")
		algo[key] = $7
	else if (!($2 in is_peer)) {
		is_peer[$2] = 1
		peer[++n_peers] = $2
	}
	if (!(key in seen)) {
		seen[key] = 1
		keys[++n_keys] = key
	}
	if ($4 > n_rounds)
		n_rounds = $4
}

# Of @library's rounds; 0 where it has none.
function median(library, key,    n, i, j, x, sorted)
{
	for (i = 1; i <= n_rounds; i++) {
		if (!((library, key, i) in us))
			continue
		x = us[library, key, i]
		for (j = n++; j > 0 && sorted[j - 1] > x; j--)
			sorted[j] = sorted[j - 1]
		sorted[j] = x
	}
	if (!n)
		return 0
	return n % 2 ? sorted[(n - 1) / 2] : \
		(sorted[n / 2 - 1] + sorted[n / 2]) / 2
}

# Of the rounds in which both were measured, into ratio_min and ratio_max.
function spread(library, key,    i, ratio)
{
	ratio_min = ratio_max = 0
	for (i = 1; i <= n_rounds; i++) {
		if (!((library, key, i) in us) || !(("wreath", key, i) in us))
			continue
		ratio = us["wreath", key, i] / us[library, key, i]
		if (!ratio_min || ratio < ratio_min)
			ratio_min = ratio
		if (ratio > ratio_max)
			ratio_max = ratio
	}
}

END {
	printf "%-14s %5s %10s", "collective", "ranks", "bytes"
	for (p = 1; p <= n_peers; p++)
		printf " %12s", peer[p]
	printf " %12s %-10s %6s %s\n", "wreath", "algo", "ratio", "(min..max)"
	printf "[" >json
	for (k = 1; k <= n_keys; k++) {
		key = keys[k]
		split(key, part, " ")
		mine = median("wreath", key)
		best = ""
		best_us = 0
		printf "%-14s %5d %10d", part[1], part[2], part[3]
		for (p = 1; p <= n_peers; p++) {
			theirs = median(peer[p], key)
			if (theirs)
				printf " %12.2f", theirs
			else
				printf " %12s", "-"
			if (theirs && (!best_us || theirs < best_us)) {
				best = peer[p]
				best_us = theirs
			}
		}
		if (!mine || !best_us) {
			printf " %12.2f %-10s\n", mine, algo[key]
			continue
		}
		spread(best, key)
		printf " %12.2f %-10s %6.2f (%.2f..%.2f)\n", mine, algo[key], \
			mine / best_us, ratio_min, ratio_max
		printf "%s\n  {\"collective\": \"%s\", " \
			"\"ranks\": %d, \"bytes\": %d, \"wreath_us\": %.4f, " \
			"\"wreath_algo\": \"%s\", \"best_peer\": \"%s\", " \
			"\"best_peer_us\": %.4f, \"ratio\": %.4f, " \
			"\"ratio_min\": %.4f, \"ratio_max\": %.4f}", \
			n_written++ ? "," : "", part[1], part[2], part[3], \
			mine, algo[key], best, best_us, mine / best_us, \
			ratio_min, ratio_max >json
	}
	printf "\n]\n" >json
}
