# SPDX-License-Identifier: MIT
# For the other checks: strip(line) is a line of C without its comments and
# with every string and character made empty.  Lines of a file must come in
# order, every one.  Sets had_slashes where a comment began with two slashes.

function strip(line,    out, token, c)
{
	if (FNR == 1)
		in_comment = 0
	had_slashes = 0
	out = ""
	while (line != "") {
		if (in_comment) {
			if (!index(line, "*/"))
				return out
			line = substr(line, index(line, "*/") + 2)
			out = out " "
			in_comment = 0
			continue
		}
		if (!match(line, /["']|\/\*|\/\//))
			return out line
		out = out substr(line, 1, RSTART - 1)
		token = substr(line, RSTART, RLENGTH)
		line = substr(line, RSTART + RLENGTH)
		if (token == "/*") {
			in_comment = 1
		} else if (token == "//") {
			had_slashes = 1
			return out
		} else {
			while (line != "") {
				c = substr(line, 1, 1)
				line = substr(line, 2)
				if (c == "\\")
					line = substr(line, 2)
				else if (c == token)
					break
			}
			out = out token token
		}
	}
	return out
}

function complain(text)
{
	printf "%s:%d: %s\n", FILENAME, FNR, text
	n_complaints++
}

# Rules run to their end even when a file has no fault.
END { if (n_complaints) exit 1 }
