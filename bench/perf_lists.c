/* SPDX-License-Identifier: MIT */
/* Lists on the command line of `wreath perf`: words or sizes, and commas. */
#include <string.h>

#include "bench/perf.h"

/* After "auto", enum sched_algo's order. */
const char *const perf_algo_names[] = {"auto", "ring", "oneshot", "twoshot",
				       "tree", "split-ring", "halving",
				       "direct", NULL};
_Static_assert(base_countof(perf_algo_names) == PERF_ALGOS_MAX + 1,
	       "every algorithm has its name");
const char *const perf_op_names[WREATH_N_OPS + 1] = {
	[WREATH_SUM] = "sum", [WREATH_PROD] = "prod", [WREATH_MIN] = "min",
	[WREATH_MAX] = "max", [WREATH_AVG] = "avg",
};

static bool is_word(const char *word, size_t length, const char *name)
{
	return name && strlen(name) == length && !strncmp(name, word, length);
}

static bool take_type(struct perf_options *options, const char *word,
		      size_t length)
{
	bool is_all = is_word(word, length, "all");
	bool found = false;
	int i;

	for (i = 0; i < WREATH_N_TYPES; i++) {
		if (!is_all && !is_word(word, length, perf_types[i].name) &&
		    !is_word(word, length, perf_types[i].other))
			continue;
		options->types[i] = true;
		found = true;
	}
	return found;
}

static bool take_op(struct perf_options *options, const char *word,
		    size_t length)
{
	bool is_all = is_word(word, length, "all");
	bool found = false;
	int i;

	for (i = 0; i < WREATH_N_OPS; i++) {
		if (!is_all && !is_word(word, length, perf_op_names[i]))
			continue;
		options->ops[i] = true;
		found = true;
	}
	return found;
}

static void add_algo(struct perf_options *options, int algo)
{
	int i;

	for (i = 0; i < options->n_algos; i++) {
		if (options->algos[i] == algo)
			return;
	}
	options->algos[options->n_algos++] = algo;
}

static bool take_algo(struct perf_options *options, const char *word,
		      size_t length)
{
	int i;

	if (is_word(word, length, "all")) {
		/* Auto comes last, beside all that it could have chosen. */
		for (i = 1; perf_algo_names[i]; i++)
			add_algo(options, i);
		add_algo(options, 0);
		options->all_algos = true;
		return true;
	}
	for (i = 0; perf_algo_names[i]; i++) {
		if (is_word(word, length, perf_algo_names[i])) {
			add_algo(options, i);
			return true;
		}
	}
	return false;
}

static bool has_form(const struct perf_options *options, int algo)
{
	return !algo || sched_has_form(perf_collectives[options->kind].sched,
				       (enum sched_algo)(algo - 1));
}

bool perf_list_fit(const struct bench_args *args, struct perf_options *options)
{
	const char *names[PERF_ALGOS_MAX + 1] = {NULL};
	int n_names = 0;
	int n = 0;
	int i;

	for (i = 0; perf_algo_names[i]; i++) {
		if (has_form(options, i))
			names[n_names++] = perf_algo_names[i];
	}
	for (i = 0; i < options->n_algos; i++) {
		int algo = options->algos[i];

		if (has_form(options, algo)) {
			options->algos[n++] = algo;
		} else if (!options->all_algos) {
			bench_refuse(args, "%s has no such algorithm",
				     perf_collectives[options->kind].name);
			bench_word(args, "--algo", perf_algo_names[algo],
				   names);
			return false;
		}
	}
	options->n_algos = n;
	return true;
}

/* "8,1K,64K" */
static bool take_sizes(const struct bench_args *args, const char *value,
		       struct perf_options *options)
{
	options->n_sizes = 0;
	do {
		size_t length = strcspn(value, ",");
		uint64_t bytes;
		char word[32];

		snprintf(word, sizeof(word), "%.*s", (int)length, value);
		if (options->n_sizes == PERF_SIZES_MAX ||
		    !base_parse_size(word, &bytes) || bytes > PERF_BYTES_MAX) {
			bench_refuse(args, "--sizes '%s' is not a size, such "
					   "as 8 or 64K, or one of more than "
					   "%d", word, PERF_SIZES_MAX);
			return false;
		}
		options->sizes[options->n_sizes++] = bytes;
		value += length + (value[length] == ',');
	} while (*value);
	return true;
}

bool perf_list_read(const struct bench_args *args, enum perf_list list,
		    const char *value, struct perf_options *options)
{
	static bool (*const takes[])(struct perf_options *options,
				     const char *word, size_t length) = {
		[PERF_OPS] = take_op,
		[PERF_TYPES] = take_type,
		[PERF_ALGOS] = take_algo,
	};
	const char *types[WREATH_N_TYPES + 1] = {NULL};
	const char *const *words = types;
	char name[32];
	char word[64];
	int i;

	if (list == PERF_SIZES)
		return take_sizes(args, value, options);
	snprintf(name, sizeof(name), "--%s", args->options[list].name);
	for (i = 0; i < WREATH_N_TYPES; i++)
		types[i] = perf_types[i].name;
	if (list != PERF_TYPES)
		words = list == PERF_OPS ? perf_op_names : perf_algo_names;
	do {
		size_t length = strcspn(value, ",");

		if (!takes[list](options, value, length)) {
			snprintf(word, sizeof(word), "%.*s", (int)length,
				 value);
			bench_word(args, name, word, words);
			return false;
		}
		value += length + (value[length] == ',');
	} while (*value);
	return true;
}
