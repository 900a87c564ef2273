/* SPDX-License-Identifier: MIT */
/*
 * The text of a tuning file: a rule or a parameter a line.
 *
 *   all_reduce ranks 8 nodes 2 bytes 64K-1M algo split-ring channels 2
 *   latency rail 0 5us
 *   bandwidth node 400G
 *   fold 40GB
 */
#include <stdio.h>
#include <string.h>

#include "sched.h"
#include "words.h"

static const char *const knobs[SCHED_N_KNOBS] = {
	[SCHED_LATENCY] = "latency", [SCHED_OVERHEAD] = "overhead",
	[SCHED_BANDWIDTH] = "bandwidth", [SCHED_FOLD] = "fold",
	[SCHED_COPY] = "copy", [SCHED_WAIT] = "wait",
};

enum key {
	RANKS,
	NODES,
	BYTES,
	ALGO,
	CHANNELS,
	N_KEYS,
};

static const char *const keys[] = {"ranks", "nodes", "bytes", "algo",
				   "channels", NULL};

/* A word that must be there, as text too. */
static int next_value(struct reader *reader, const char *of, struct word *word,
		      char text[WORD_SHOWN])
{
	if (!words_next(reader, word))
		return words_refuse(reader, word, "%s needs a value", of);
	words_shown(word, text);
	if (word->length < WORD_SHOWN)
		return 0;
	return words_refuse(reader, word, "'%s...' has more than %d characters",
			    text, WORD_SHOWN - 1);
}

/* N, N-M or N-. */
static bool read_range(const char *text, bool is_size, uint64_t max,
		       uint64_t *low, uint64_t *high)
{
	char part[WORD_SHOWN];
	const char *dash = strchr(text, '-');
	size_t n = dash ? (size_t)(dash - text) : strlen(text);
	int64_t number[2];
	uint64_t size[2];
	int i;

	for (i = 0; i < 2; i++) {
		snprintf(part, sizeof(part), "%.*s", (int)n, text);
		if (is_size ? !base_parse_size(part, &size[i])
			    : !base_parse_int(part, 0, INT32_MAX, &number[i]))
			return false;
		if (!is_size)
			size[i] = (uint64_t)number[i];
		if (!dash)
			size[1] = size[0];
		else if (!dash[1])
			size[1] = max;
		if (!dash || !dash[1])
			break;
		text = dash + 1;
		n = strlen(text);
	}
	*low = size[0];
	*high = size[1];
	return *low <= *high && *high <= max;
}

/* ---- rules ---- */

static int read_numbers(struct reader *reader, enum key key,
			struct sched_rule *rule)
{
	uint64_t max = key == BYTES ? UINT64_MAX
		       : key == CHANNELS ? SCHED_CHANNELS_MAX : SCHED_RANKS_MAX;
	char text[WORD_SHOWN];
	uint64_t low, high;
	struct word word;
	int err = next_value(reader, keys[key], &word, text);

	if (err)
		return err;
	if (!read_range(text, key == BYTES, max, &low, &high) ||
	    (key != BYTES && !low) || (key == CHANNELS && low != high)) {
		if (key == BYTES)
			return words_refuse(reader, &word,
					    "bytes '%s' is not a size or a "
					    "range of sizes, such as 64K-1M or "
					    "1M-", text);
		return words_refuse(reader, &word,
				    "%s '%s' is not a number%s from 1 to %d",
				    keys[key], text, key == CHANNELS
				    ? "" : " or a range, such as 2-8 or 16-,",
				    (int)max);
	}
	switch (key) {
	case RANKS:
		rule->ranks_min = (int)low;
		rule->ranks_max = (int)high;
		break;
	case NODES:
		rule->nodes_min = (int)low;
		rule->nodes_max = (int)high;
		break;
	case BYTES:
		rule->bytes_min = low;
		rule->bytes_max = high;
		break;
	case CHANNELS:
		rule->n_channels = (int)low;
		break;
	case ALGO:
	case N_KEYS:
		break;
	}
	return 0;
}

static int read_algo(struct reader *reader, struct sched_rule *rule)
{
	const char *names[SCHED_N_ALGOS + 1];
	struct word word;
	int i;

	/* The name past the end is NULL. */
	for (i = 0; i <= SCHED_N_ALGOS; i++)
		names[i] = sched_algo_name((enum sched_algo)i);
	words_next(reader, &word);
	i = words_choose(reader, &word, "algorithm", names);
	if (i < 0)
		return i;
	rule->algo = (enum sched_algo)i;
	return 0;
}

static int read_rule(struct reader *reader, int collective,
		     struct sched_tuning *tuning)
{
	struct sched_rule rule = {
		.collective = collective,
		.ranks_min = 1,
		.ranks_max = SCHED_RANKS_MAX,
		.nodes_min = 1,
		.nodes_max = SCHED_RANKS_MAX,
		.bytes_max = UINT64_MAX,
	};
	bool is_given[N_KEYS] = {false};
	struct word word;
	int err;

	while (words_next(reader, &word)) {
		int key = words_choose(reader, &word, "key", keys);

		if (key < 0)
			return key;
		if (is_given[key])
			return words_refuse(reader, &word, "%s is given twice",
					    keys[key]);
		is_given[key] = true;
		err = key == ALGO ? read_algo(reader, &rule)
				  : read_numbers(reader, (enum key)key, &rule);
		if (err)
			return err;
	}
	if (!is_given[ALGO])
		return words_refuse(reader, &word, "a rule needs an algo, such "
				    "as algo ring");
	if (tuning->n_rules == SCHED_RULES_MAX)
		return words_refuse(reader, &word,
				    "there are more than %d rules",
				    SCHED_RULES_MAX);
	tuning->rules[tuning->n_rules++] = rule;
	return 0;
}

/* ---- parameters ---- */

/* "node", or "rail N". */
static int read_tier(struct reader *reader, int *tier)
{
	static const char *const tiers[] = {"node", "rail", NULL};
	char text[WORD_SHOWN];
	struct word word;
	int64_t rail;
	int err;

	words_next(reader, &word);
	*tier = words_choose(reader, &word, "place", tiers);
	if (*tier <= 0)
		return *tier;
	err = next_value(reader, "rail", &word, text);
	if (err)
		return err;
	if (!base_parse_int(text, 0, SCHED_RAILS_MAX - 1, &rail))
		return words_refuse(reader, &word,
				    "rail '%s' is not a number from 0 to %d",
				    text, SCHED_RAILS_MAX - 1);
	*tier = 1 + (int)rail;
	return 0;
}

static int read_knob(struct reader *reader, enum sched_knob knob,
		     struct sched_tuning *tuning)
{
	bool has_tier = knob == SCHED_LATENCY || knob == SCHED_OVERHEAD ||
			knob == SCHED_BANDWIDTH;
	bool is_rate = knob == SCHED_BANDWIDTH || knob == SCHED_FOLD ||
		       knob == SCHED_COPY;
	char text[WORD_SHOWN];
	struct word word;
	double value;
	int tier = 0;
	int err = has_tier ? read_tier(reader, &tier) : 0;

	if (!err)
		err = next_value(reader, knobs[knob], &word, text);
	if (err)
		return err;
	if (is_rate && !sched_parse_rate(text, &value))
		return words_refuse(reader, &word,
				    "%s '%s' is not a rate, such as 100G (bits "
				    "a second) or 12.5GB (bytes a second)",
				    knobs[knob], text);
	if (!is_rate && !sched_parse_time(text, &value))
		return words_refuse(reader, &word,
				    "%s '%s' is not a time, such as 200ns, 5us "
				    "or 1.5ms", knobs[knob], text);
	if (tuning->is_given[knob][tier])
		return words_refuse(reader, &word, "%s is given twice",
				    knobs[knob]);
	tuning->is_given[knob][tier] = true;
	tuning->given[knob][tier] = value;
	if (!words_next(reader, &word))
		return 0;
	return words_refuse(reader, &word, "'%s' is more than %s takes",
			    words_shown(&word, text), knobs[knob]);
}

static int read_line(struct reader *reader, struct sched_tuning *tuning)
{
	const char *names[SCHED_N_KNOBS + 1 + SCHED_N_COLLECTIVES + 1];
	struct word word;
	int found, i;

	if (!words_next(reader, &word))
		return 0;
	for (i = 0; i < SCHED_N_KNOBS; i++)
		names[i] = knobs[i];
	names[i++] = "any";
	/* The name past the end is NULL. */
	for (; i < (int)base_countof(names); i++)
		names[i] = sched_collective_name(
			(enum sched_collective)(i - SCHED_N_KNOBS - 1));
	found = words_choose(reader, &word, "collective or parameter", names);
	if (found < 0)
		return found;
	if (found < SCHED_N_KNOBS)
		return read_knob(reader, (enum sched_knob)found, tuning);
	return read_rule(reader, found - SCHED_N_KNOBS - 1, tuning);
}

int sched_tuning_parse(const char *name, const char *text,
		       struct sched_tuning *tuning)
{
	struct reader reader = {name, text, text, 1};
	const char *byte;
	int err;

	memset(tuning, 0, sizeof(*tuning));
	do {
		err = read_line(&reader, tuning);
	} while (!err && words_line(&reader));
	/* FNV-1a, to tell files apart; it protects from nothing. */
	tuning->hash = 0xcbf29ce484222325u;
	for (byte = text; *byte; byte++)
		tuning->hash = (tuning->hash ^ (unsigned char)*byte) *
			       0x100000001b3u;
	return err;
}
