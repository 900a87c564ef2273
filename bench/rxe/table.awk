# SPDX-License-Identifier: MIT
# Lines "WHO ROUND BYTES VALUE" of inside.sh to a table of medians and ratios,
# and to the JSON file @json.

/^#/ { next }

{
	value[$1, $3, ++n[$1, $3]] = $4
	if ($1 == "wreath" && n[$1, $3] == 1)
		sizes[++n_sizes] = $3
}

function median(who, bytes,    i, j, x, m, sorted)
{
	m = n[who, bytes]
	for (i = 1; i <= m; i++) {
		x = value[who, bytes, i]
		for (j = i; j > 1 && sorted[j - 1] > x; j--)
			sorted[j] = sorted[j - 1]
		sorted[j] = x
	}
	if (!m)
		return 0
	return m % 2 ? sorted[(m + 1) / 2] : \
		(sorted[m / 2] + sorted[m / 2 + 1]) / 2
}

function ratio(a, b)
{
	return b ? sprintf("%.2f", a / b) : "-"
}

END {
	lat = median("lat", 8)
	# Both directions together, in MiB; each rank of two sends and
	# receives as many bytes as the vector has.
	rate = median("bw", 65536) / 2 * 1.048576
	printf "limit: ib_write_lat %.2f us at 8 bytes, %.2f us where both " \
		"ends send at once\n       (ib_write_bw -b -t 1); " \
		"ib_write_bw -b %.1f MB/s a direction at 64 KiB\n\n", lat, \
		median("turn", 8), rate
	printf "%9s %12s %12s %12s %10s %12s %12s\n", "bytes", "limit us", \
		"openmpi us", "wreath us", "busbw MB/s", "of the limit", \
		"of openmpi"
	printf "[" >json
	for (i = 1; i <= n_sizes; i++) {
		bytes = sizes[i]
		w = median("wreath", bytes)
		o = median("openmpi", bytes)
		l = bytes <= 8 ? lat : rate ? bytes / rate : 0
		printf "%9d %12.1f %12.1f %12.1f %10.1f %12s %12s\n", bytes, \
			l, o, w, w ? bytes / w : 0, \
			bytes <= 8 ? ratio(w, l) : ratio(l, w), ratio(w, o)
		printf "%s\n  {\"bytes\": %d, \"limit_us\": %.3f, " \
			"\"openmpi_us\": %.3f, \"wreath_us\": %.3f}", \
			(i > 1 ? "," : ""), bytes, l, o, w >json
	}
	printf "\n]\n" >json
	print "\n'of the limit': at 8 bytes the time in multiples of " \
		"ib_write_lat's;\nelse the bus bandwidth as a share of " \
		"ib_write_bw's rate."
	if (!n_sizes)
		exit 1
}
