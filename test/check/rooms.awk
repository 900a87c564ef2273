# SPDX-License-Identifier: MIT
# The architecture as written in lib/rooms, read first, against the includes of
# every file after it.

function split_path(path)
{
	split(path, part, "/")
	place = part[1]
	room = place == "lib" ? part[2] : ""
	# A unit test may look into the room that it is named after.
	if (path ~ /^test\/unit\/(t_)?[a-z]+[_.]/) {
		room = path
		sub(/^test\/unit\/(t_)?/, "", room)
		sub(/[_.].*/, "", room)
	}
}

# System headers that belong to few rooms: pattern, rooms, in words.
function restrict(pattern, rooms, words)
{
	n_restricted++
	pattern_of[n_restricted] = pattern
	rooms_of[n_restricted] = " " rooms " "
	words_of[n_restricted] = words
}

BEGIN {
	restrict("^infiniband/", "verbs soft net", "verbs")
	restrict("^rdma/", "verbs", "librdmacm")
	restrict("^(sys/socket|sys/un|netdb)\\.h$", "boot soft", "sockets")
	restrict("^(ifaddrs|net/if)\\.h$", "boot soft topo nccl", "interfaces")
	restrict("^(netinet/|net/([^i]|if[^.]))", "boot soft", "sockets")
	restrict("^(cuda|nvml|driver_types)", "mem", "CUDA")
	restrict("(intrin|arm_neon|arm_sve|cpuid)\\.h$", "reduce",
		"intrinsics")
}

FILENAME == "lib/rooms" {
	sub(/#.*/, "")
	if (!NF)
		next
	if ($1 !~ /^[a-z][a-z0-9]*:$/) {
		complain("not 'room: rooms': " $0)
		next
	}
	name = substr($1, 1, length($1) - 1)
	if (name in known)
		complain("room " name " stands here twice")
	for (i = 2; i <= NF; i++) {
		if (!($i in known))
			complain("room " name " may not use " $i ", which is "\
				"not above it")
		may[name, $i] = 1
	}
	known[name] = 1
	next
}

FNR == 1 {
	split_path(FILENAME)
	if (place == "lib" && !(room in known))
		complain("room " room " is not in lib/rooms")
	seen[room] = 1
}

{ code = strip($0) }

code !~ /^[ \t]*#[ \t]*include/ { next }

/<[^>]*>/ {
	header = $0
	sub(/^[^<]*</, "", header)
	sub(/>.*/, "", header)
	if (place == "examples" || place == "test" || place == "bench")
		next
	if (place == "include" && header !~ /^std(def|int|bool)\.h$/)
		complain("wreath.h includes <" header ">")
	for (i = 1; i <= n_restricted; i++)
		if (header ~ pattern_of[i] &&
		    !index(rooms_of[i], " " room " "))
			complain("<" header "> in " room ": " words_of[i]\
				" only in:" rooms_of[i])
	if (room == "sched" && header ~ \
	    /^(pthread|threads|stdatomic|time|sys\/time|unistd|poll)\.h$/)
		complain("<" header ">: sched knows no threads, clock or files")
	next
}

/"[^"]*"/ {
	header = $0
	sub(/^[^"]*"/, "", header)
	sub(/".*/, "", header)
	if (header == "wreath.h")
		next
	if (place == "examples") {
		complain("an example includes only wreath.h, not " header)
		next
	}
	n = split(header, part, "/")
	# Its own folder.
	if (n == 1 || (n == 2 && part[1] == room && place == "lib"))
		next
	if (place == "lib" && (n != 2 || !(part[1] in known))) {
		complain("\"" header "\" is of no room")
		next
	}
	if (part[1] == "test" || part[1] == "bench") {
		if (part[1] != place && place != "test")
			complain("\"" header "\" is not for " place)
		next
	}
	if (n != 2 || !(part[1] in known)) {
		complain("\"" header "\" is of no room")
		next
	}
	# What maps variables is tested by itself, outside of its library.
	if (FILENAME == "test/nccl/env.c" && header == "nccl/env.h")
		next
	# What is about GPUs is a part of the door, in a file of its own.
	if (part[2] != part[1] ".h" && part[2] != "gpu.h" && part[1] != room)
		complain("\"" header "\" is private; the door is "\
			part[1] "/" part[1] ".h")
	if (place == "lib" && !((room, part[1]) in may))
		complain("room " room " may not use " part[1]\
			" (lib/rooms)")
	# The drop-in is a customer of one room, by its door.
	if (FILENAME ~ /^test\/dropin\// && header == "soft/soft.h")
		next
	# The simulated driver folds as reduce does.
	if (FILENAME ~ /^test\/cuda\// && header ~ /^(base|reduce)\//)
		next
	if (place == "test" && FILENAME !~ /^test\/unit\//)
		complain("only unit tests reach the rooms: " header)
	next
}

# Computed includes would hide the architecture.
{ complain("an include that cannot be read") }

END {
	for (name in known)
		if (!(name in seen)) {
			print "lib/rooms: room " name " has no sources"
			n_complaints++
		}
}
