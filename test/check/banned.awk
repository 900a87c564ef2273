# SPDX-License-Identifier: MIT
# Calls that we do not make, each with what to use instead.  A row: the names,
# where they are banned (an expression on the file's path), where they are
# allowed all the same, and the substitute.  lib/nccl cannot reach base, and so
# has memory from malloc(), and one file that reads the environment.

function ban(names, where, but, instead,    n, i, name)
{
	n = split(names, name, " ")
	for (i = 1; i <= n; i++) {
		where_of[name[i]] = where
		but_of[name[i]] = but == "" ? "^$" : but
		instead_of[name[i]] = instead
	}
}

BEGIN {
	ban("sprintf vsprintf strcpy strcat stpcpy gets", ".", "",
		"snprintf() or memcpy(): they know the room")
	ban("strncpy strncat", ".", "", "snprintf(): it always ends the string")
	ban("atoi atol atoll atof", ".", "",
		"base_parse_int(), strtol() in examples: they see errors")
	ban("usleep", ".", "", "nanosleep()")
	ban("alloca", ".", "", "an array with a limit")
	ban("strtok", ".", "", "strcspn()")
	ban("tmpnam tempnam mktemp", ".", "", "mkstemp()")
	ban("rand srand random srandom drand48", "^(lib|bench)/", "",
		"base_random(), or a generator with a seed that is printed")
	ban("malloc calloc realloc aligned_alloc posix_memalign strdup " \
		"strndup asprintf vasprintf free", "^lib/", "^lib/(base|nccl)/",
		"base_alloc() and base_free()")
	ban("printf vprintf fprintf vfprintf dprintf puts fputs putchar perror",
		"^lib/", "^lib/base/", "base_error() or base_log()")
	ban("exit _exit _Exit quick_exit atexit abort err errx", "^lib/",
		"^lib/base/", "an error for the caller, or wreath_assert()")
	ban("assert", "^(lib|bench)/", "",
		"wreath_assert(): it stays in release builds")
	ban("getenv secure_getenv setenv putenv unsetenv", "^(lib|bench)/",
		"^lib/(base|nccl)/env\\.c$|^bench/perf", "base_env_load()")
	ban("system popen", "^(lib|bench)/", "", "posix_spawn() without a shell")
	ban("sleep", "^lib/", "", "a wait with a deadline")
	ban("sscanf fscanf scanf", "^lib/", "", "base_parse_int()")
	ban("select", "^(lib|bench)/", "", "poll(): it has no largest descriptor")
	ban("gethostbyname inet_ntoa inet_addr", ".", "", "getaddrinfo()")
	ban("dlsym dlopen", "^lib/", "^lib/(verbs|mem|boot)/",
		"the tables of verbs and mem")
}

{
	code = strip($0)
	if (code ~ /^[ \t]*#/)
		next
	rest = code
	before = " "
	while (match(rest, /[A-Za-z_][A-Za-z0-9_]*[ \t]*\(/)) {
		name = substr(rest, RSTART, RLENGTH - 1)
		sub(/[ \t]*$/, "", name)
		if (RSTART > 1)
			before = substr(rest, RSTART - 1, 1)
		rest = substr(rest, RSTART + RLENGTH)
		# A member that is called so is something else.
		if (name in where_of && before !~ /[.>]/ &&
		    FILENAME ~ where_of[name] && FILENAME !~ but_of[name])
			complain(name "() is not used here: " instead_of[name])
		before = "("
	}
}

code ~ /wreath_assert\(.*(\+\+|--|[^=!<>]=[^=])/ {
	complain("wreath_assert() with a side effect")
}

code ~ /(if|while) \([^(]*[!=]= *NULL/ { complain("write !pointer, or pointer") }

# The names in nccl.h are not ours to choose.
code ~ /^typedef (struct|union|enum)/ && FILENAME !~ /^test\/|\/nccl\.h$/ {
	complain("no typedef of a struct, union or enum")
}
