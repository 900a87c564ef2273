# SPDX-License-Identifier: MIT
# Sections of a man page: known, in order, and those that each page must have.
# A page of section 7 may have sections of its own after DESCRIPTION.
BEGIN {
	order = "NAME:LIBRARY:SYNOPSIS:DESCRIPTION:RETURN VALUES:" \
		"ENVIRONMENT:FILES:EXIT STATUS:EXAMPLES:DIAGNOSTICS:ERRORS:" \
		"SEE ALSO:STANDARDS:HISTORY:CAVEATS:BUGS:SECURITY " \
		"CONSIDERATIONS:"
}

function place_of(title)
{
	return index(":" order, ":" title ":")
}

function complain(text)
{
	printf "%s:%d: %s\n", FILENAME, FNR, text
	faults++
}

/^\.S[hH] / {
	title = $0
	sub(/^\.S[hH] +/, "", title)
	gsub(/"/, "", title)
	seen[title] = 1
	at = place_of(title)
	if (!at) {
		if (FILENAME !~ /\.7$/)
			complain("section " title " is not known")
		else if (last != place_of("DESCRIPTION"))
			complain("section " title " does not follow "\
				"DESCRIPTION")
	} else if (at < last) {
		complain("section " title " comes too late")
	} else {
		last = at
	}
}

END {
	n = split("NAME DESCRIPTION", must, " ")
	if (FILENAME ~ /\.3$/)
		n = split("NAME:SYNOPSIS:DESCRIPTION:RETURN VALUES:SEE ALSO",
			must, ":")
	if (FILENAME ~ /\.1$/)
		n = split("NAME:SYNOPSIS:DESCRIPTION:EXIT STATUS:SEE ALSO",
			must, ":")
	for (i = 1; i <= n; i++)
		if (!(must[i] in seen))
			complain("no section " must[i])
	exit faults > 0
}
