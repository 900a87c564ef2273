/* SPDX-License-Identifier: MIT */
/* The environment: NCCL's variables become wreath's, once. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "nccl/env.h"
#include "nccl/inner.h"

extern char **environ;

/* More letters off than this is another word, not a slip. */
#define SLIP_MAX 3

static int blocking = -1;

const char *nccl_env(const char *name)
{
	return secure_getenv(name);
}

int nccl_env_blocking(void)
{
	return blocking;
}

/* wreath has the last word about what it is told: a bad one is refused there.*/
static void read_level(void)
{
	static const char *const words[] = {"off", "error", "warn", "info"};
	const char *text = nccl_env("WREATH_LOG");
	int i;

	if (text && !strcmp(text, "debug"))
		nccl_log_level_set(NCCL_INFO);
	for (i = 0; text && i < 4; i++)
		if (!strcmp(text, words[i]))
			nccl_log_level_set((enum nccl_level)i);
}

static void map(const struct nccl_var *var, const char *value)
{
	struct nccl_mapping mapping = {.value = value};
	enum nccl_mapped mapped = var->map(&mapping);
	const char *set = nccl_env(var->target);

	if (mapped == NCCL_CANNOT) {
		nccl_log(NCCL_WARN, "%s=%.64s is ignored: %s", var->name, value,
			 mapping.note);
		return;
	}
	if (*mapping.note)
		nccl_log(NCCL_WARN, "%s=%.64s: %s", var->name, value,
			 mapping.note);
	if (mapped == NCCL_DEFAULT)
		return;
	if (set) {
		nccl_log(NCCL_INFO, "%s=%.64s is ignored: %s is set", var->name,
			 value, var->target);
		return;
	}
	setenv(var->target, mapping.out, 0);
	/* Of the log itself, before anything is said. */
	read_level();
	nccl_log(NCCL_INFO, "%s=%.64s is taken for %s=%s", var->name, value,
		 var->target, mapping.out);
}

static void map_all(void)
{
	const struct nccl_var *var;

	for (var = nccl_vars; var->name; var++) {
		const char *value = nccl_env(var->name);

		if (!value)
			continue;
		if (var->map)
			map(var, value);
		else if (var->why)
			nccl_log(NCCL_WARN, "%s is ignored: %s", var->name,
				 var->why);
	}
}

/* ---- names ---- */

static unsigned int least(unsigned int a, unsigned int b, unsigned int c)
{
	if (b < a)
		a = b;
	return c < a ? c : a;
}

/* Letters to change, add or take away. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[64];
	size_t n = strlen(b);
	size_t i, j;

	if (n >= 64 || strlen(a) >= 64)
		return UINT_MAX;
	for (j = 0; j <= n; j++)
		row[j] = (unsigned int)j;
	for (i = 1; a[i - 1]; i++) {
		unsigned int corner = row[0];

		row[0] = (unsigned int)i;
		for (j = 1; j <= n; j++) {
			unsigned int change = corner + (a[i - 1] != b[j - 1]);

			corner = row[j];
			row[j] = least(change, row[j] + 1, row[j - 1] + 1);
		}
	}
	return row[n];
}

/* The variable of that name, or in *@nearest one that is nearly called so. */
static const struct nccl_var *find(const char *name, const char **nearest)
{
	unsigned int best = SLIP_MAX + 1;
	const struct nccl_var *var;

	*nearest = NULL;
	for (var = nccl_vars; var->name; var++) {
		unsigned int d = distance(name, var->name);

		if (!d)
			return var;
		if (d < best) {
			best = d;
			*nearest = var->name;
		}
	}
	return NULL;
}

static void tell_unknown(const char *name, const char *nearest)
{
	if (nearest)
		nccl_log(NCCL_WARN,
			 "unknown variable %.64s is ignored; did you mean %s?",
			 name, nearest);
	else
		nccl_log(NCCL_WARN,
			 "unknown variable %.64s is ignored; wreath_nccl(7) "
			 "lists those that mean something", name);
}

static void tell_names(void)
{
	char ignored[1024] = "";
	char **at;

	for (at = environ; at && *at; at++) {
		const struct nccl_var *var;
		const char *nearest;
		char name[128];
		size_t end = strlen(ignored);

		if (strncmp(*at, "NCCL_", 5))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*at, "="),
			 *at);
		var = find(name, &nearest);
		if (!var)
			tell_unknown(name, nearest);
		else if (!var->target && !var->why)
			snprintf(ignored + end, sizeof(ignored) - end, "%s%s",
				 end ? ", " : "", name);
	}
	if (*ignored)
		nccl_log(NCCL_WARN, "ignored, since they mean nothing here: %s",
			 ignored);
}

static void read_all(void)
{
	const char *text = nccl_env("NCCL_COMM_BLOCKING");
	const char *debug = nccl_env("NCCL_DEBUG");
	enum nccl_level level = NCCL_INFO;
	int version = wreath_version();
	long value;

	read_level();
	/* In a program with more privileges than its caller nothing is read. */
	if (getauxval(AT_SECURE))
		return;
	map_all();
	/* Whoever asks for the version asks what he has. */
	if (debug && !strcasecmp(debug, "VERSION"))
		level = NCCL_WARN;
	nccl_log(level, "wreath %d.%d.%d in place of NCCL %d.%d.%d",
		 version / 10000, version / 100 % 100, version % 100,
		 NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
	if (text && nccl_parse(text, 0, 1, &value))
		blocking = (int)value;
	else if (text)
		nccl_log(NCCL_WARN, "NCCL_COMM_BLOCKING=%.64s is ignored: it "
			 "is neither 0 nor 1", text);
	tell_names();
}

void nccl_env_read(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_all);
}
