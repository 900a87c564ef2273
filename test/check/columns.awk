# SPDX-License-Identifier: MIT
# 80 columns, tabs of 8; 100 where the line ends in a string that would be cut.
{
	line = $0
	width = 0
	while ((at = index(line, "\t"))) {
		width += at - 1
		width += 8 - width % 8
		line = substr(line, at + 1)
	}
	width += length(line)
	if (width > 80 && !(width <= 100 && $0 ~ /"[ \t,;)}\\]*$/))
		complain(width " columns")
}

/[ \t]$/ { complain("blanks at the end") }
/^    / && FILENAME ~ /\.([ch]|inc|cu)$/ {
	complain("indented by blanks, not tabs")
}

# Comments of C are the long ones; what is not done is an issue, not a remark.
FILENAME ~ /\.([ch]|inc|cu|cc)$/ {
	strip($0)
	if (had_slashes)
		complain("a comment of two slashes")
}

/(^|[^A-Za-z0-9_])(TO[D]O|FIX[M]E|X[X]X)([^A-Za-z0-9_]|$)/ {
	complain("unfinished work belongs in an issue")
}
