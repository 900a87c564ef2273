/* SPDX-License-Identifier: MIT */
/*
 * Reading of command lines.  getopt_long() would do the letters, but can
 * neither name the nearest option nor print the table as help.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

/* Longer words are no slips of ours: all our names are far shorter. */
#define WORD_MAX 48

const char *bench_nearest(const char *word, const char *const *words)
{
	size_t length = strlen(word);
	/* A third of the letters may be wrong, or the rest of it be missing. */
	unsigned int best = (unsigned int)(length / 3 + 2);
	const char *nearest = NULL;
	size_t i;

	if (length > WORD_MAX)
		return NULL;
	for (i = 0; words[i]; i++) {
		unsigned int d;

		if (length >= 3 && !strncmp(word, words[i], length))
			return words[i];
		if (strlen(words[i]) > WORD_MAX)
			continue;
		d = base_distance(word, words[i]);
		if (d < best) {
			best = d;
			nearest = words[i];
		}
	}
	return nearest;
}

int bench_refuse(const struct bench_args *args, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", args->command);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return BENCH_BAD;
}

static int refuse_option(const struct bench_args *args, const char *name,
			 size_t length)
{
	const char *names[128];
	char word[WORD_MAX + 1];
	const char *nearest;
	size_t i;

	for (i = 0; args->options[i].name && i + 1 < base_countof(names); i++)
		names[i] = args->options[i].name;
	names[i] = NULL;
	snprintf(word, sizeof(word), "%.*s", (int)length, name);
	nearest = bench_nearest(word, names);
	if (nearest)
		return bench_refuse(args, "unknown option --%s; did you mean "
					  "--%s?", word, nearest);
	return bench_refuse(args, "unknown option --%s; --help lists them all",
			    word);
}

/* The value of option @found: what stands behind it, or the next word. */
static int take_value(struct bench_args *args, int found, const char *attached,
		      const char **value)
{
	const struct bench_option *option = &args->options[found];

	if (!option->value) {
		if (attached)
			return bench_refuse(args, "--%s takes no value",
					    option->name);
		*value = NULL;
		return found;
	}
	if (!attached) {
		if (args->at >= args->argc)
			return bench_refuse(args, "--%s needs a value: %s",
					    option->name, option->value);
		attached = args->argv[args->at++];
	}
	*value = attached;
	return found;
}

static int next_long(struct bench_args *args, const char *name,
		     const char **value)
{
	size_t length = strcspn(name, "=");
	int i;

	if (length == 4 && !strncmp(name, "help", 4))
		return BENCH_HELP;
	for (i = 0; args->options[i].name; i++) {
		const char *have = args->options[i].name;

		if (strlen(have) == length && !strncmp(have, name, length))
			return take_value(args, i,
					  name[length] ? name + length + 1
						       : NULL, value);
	}
	return refuse_option(args, name, length);
}

static int next_letter(struct bench_args *args, const char *word,
		       const char **value)
{
	int i;

	if (word[1] == 'h' && !word[2])
		return BENCH_HELP;
	for (i = 0; args->options[i].name; i++) {
		if (args->options[i].letter == word[1])
			return take_value(args, i, word[2] ? word + 2 : NULL,
					  value);
	}
	/* "-iters" is more likely a slip of "--iters" than of "-i ters". */
	if (word[2])
		return refuse_option(args, word + 1, strlen(word + 1));
	return bench_refuse(args, "unknown option -%c; --help lists them all",
			    word[1]);
}

static int next(struct bench_args *args, const char **value)
{
	const char *word;

	if (!args->at)
		args->at = 1;
	if (args->at >= args->argc)
		return BENCH_END;
	word = args->argv[args->at++];
	if (!args->rest && !strcmp(word, "--")) {
		args->rest = true;
		return next(args, value);
	}
	if (!args->rest && word[0] == '-' && word[1] == '-')
		return next_long(args, word + 2, value);
	/* A lone dash is a name: standard output. */
	if (!args->rest && word[0] == '-' && word[1])
		return next_letter(args, word, value);
	*value = word;
	return BENCH_OPERAND;
}

int bench_word(const struct bench_args *args, const char *what,
	       const char *value, const char *const *words)
{
	const char *nearest;
	int i;

	for (i = 0; words[i]; i++) {
		if (!strcmp(words[i], value))
			return i;
	}
	fprintf(stderr, "%s: %s '%.64s' is not one of:", args->command, what,
		value);
	for (i = 0; words[i]; i++)
		fprintf(stderr, " %s", words[i]);
	nearest = bench_nearest(value, words);
	if (nearest)
		fprintf(stderr, "; did you mean %s?", nearest);
	fputc('\n', stderr);
	return BENCH_BAD;
}

static bool read_number(const struct bench_option *option, const char *value,
			double *out)
{
	char *end;
	double number = strtod(value, &end);

	/* A NaN fails every comparison, so this one is written to accept. */
	if (end == value || *end || !(number >= (double)option->min &&
				      number <= (double)option->max))
		return false;
	*out = number;
	return true;
}

/* Every kind but a word: its range is the option's. */
static bool read_plain(const struct bench_option *option, const char *value,
		       void *at)
{
	uint64_t bytes;

	switch (option->kind) {
	case BENCH_FLAG:
		*(bool *)at = true;
		return true;
	case BENCH_TEXT:
		*(const char **)at = value;
		return value[0];
	case BENCH_INT:
		return base_parse_int(value, option->min, option->max, at);
	case BENCH_SIZE:
		if (!base_parse_size(value, &bytes) ||
		    bytes < (uint64_t)option->min ||
		    bytes > (uint64_t)option->max)
			return false;
		*(uint64_t *)at = bytes;
		return true;
	case BENCH_NUMBER:
		return read_number(option, value, at);
	case BENCH_WORD:
	case BENCH_OTHER:
		break;
	}
	return false;
}

static int store(const struct bench_args *args,
		 const struct bench_option *option, const char *value,
		 void *target)
{
	void *at = (char *)target + option->offset;
	char name[WORD_MAX];
	int word;

	if (option->kind == BENCH_WORD) {
		snprintf(name, sizeof(name), "--%s", option->name);
		word = bench_word(args, name, value, option->words);
		if (word >= 0)
			*(int *)at = word;
		return word;
	}
	if (read_plain(option, value, at))
		return 0;
	if (option->kind == BENCH_TEXT)
		return bench_refuse(args, "--%s: the name is empty",
				    option->name);
	if (option->kind == BENCH_SIZE)
		return bench_refuse(args, "--%s '%.64s' is not a size from "
					  "%lld to %lld bytes, such as 512, "
					  "64K or 1G (binary)", option->name,
				    value, (long long)option->min,
				    (long long)option->max);
	if (option->min == option->max)
		return bench_refuse(args, "--%s '%.64s': it can only be %lld",
				    option->name, value,
				    (long long)option->min);
	return bench_refuse(args, "--%s '%.64s' is not a %s from %lld to %lld",
			    option->name, value,
			    option->kind == BENCH_INT ? "whole number"
						      : "number",
			    (long long)option->min, (long long)option->max);
}

int bench_read(struct bench_args *args, void *target, const char **value)
{
	int found;

	for (;;) {
		found = next(args, value);
		if (found < 0 || args->options[found].kind == BENCH_OTHER)
			return found;
		if (store(args, &args->options[found], *value, target) < 0)
			return BENCH_BAD;
	}
}

void bench_usage(FILE *to, const char *usage, const char *text,
		 const struct bench_option *options)
{
	const struct bench_option *option;

	fprintf(to, "usage: %s\n\n%s\n\n", usage, text);
	for (option = options; option->name; option++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", option->name,
			 option->value ? " " : "",
			 option->value ? option->value : "");
		if (option->letter)
			fprintf(to, "  -%c, %-22s %s\n", option->letter, left,
				option->help);
		else
			fprintf(to, "      %-22s %s\n", left, option->help);
	}
	fprintf(to, "  -h, %-22s %s\n", "--help", "this text");
}
