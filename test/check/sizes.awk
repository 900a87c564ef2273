# SPDX-License-Identifier: MIT
# A file has at most 400 lines, a function at most 70, or 90 in tests, counted
# from brace to brace.  sizes.allow, read first, has the exceptions: a file or
# file:function, its lines, and the reason.

FILENAME ~ /sizes\.allow$/ {
	if ($0 ~ /^#/ || !NF)
		next
	if (NF < 3)
		complain("an exception needs a number and a reason")
	allowed[$1] = $2
	next
}

function judge(what, lines, limit, where)
{
	if (what in allowed) {
		used[what] = 1
		if (lines <= limit) {
			print where ": " what " needs its exception no more"
			n_complaints++
		}
		limit = allowed[what]
	}
	if (lines > limit) {
		print where ": " lines " lines, limit " limit
		n_complaints++
	}
}

function end_file()
{
	if (file != "")
		judge(file, last, 400, file)
}

FNR == 1 {
	end_file()
	file = FILENAME
	is_c = file ~ /\.([ch]|inc|cu)$/
	limit = file ~ /^test\// ? 90 : 70
	start = 0
}

{ last = FNR }

!is_c { next }

/^[A-Za-z_].*\(/ {
	name = $0
	sub(/\(.*/, "", name)
	sub(/.*[^A-Za-z0-9_]/, "", name)
}

/^[A-Za-z_].*\) \{$/ {
	complain("a function's brace stands on a line of its own")
}

/^\{/ { start = FNR }

/^\}/ && start {
	judge(file ":" name, FNR - start + 1, limit,
		file ":" start ": " name "()")
	start = 0
}

END {
	end_file()
	for (what in allowed)
		if (!(what in used)) {
			print "sizes.allow: " what " does not exist"
			n_complaints++
		}
}
