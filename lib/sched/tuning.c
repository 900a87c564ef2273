/* SPDX-License-Identifier: MIT */
/*
 * The text of a tuning file: a rule or a parameter a line.
 *
 *   all_reduce ranks 8 nodes 2 bytes 64K-1M algo split-ring channels 2
 *   latency rail 0 5us
 *   bandwidth node 400G
 *   fold 40GB
 *
 * The text may come from anyone: every word is bounded, and what is not
 * understood is refused with its place and the nearest word.
 */
#include <stdio.h>
#include <string.h>

#include "sched.h"

#define WORD_BYTES 48
#define NAMES_MAX 24

struct reader {
	const char *name;
	const char *at;	     /* the rest of the text */
	const char *line_at; /* where the line begins */
	int line;
	int column; /* of the last word; 1 is the first */
	char word[WORD_BYTES];
};

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

static const char *const keys[N_KEYS] = {"ranks", "nodes", "bytes", "algo",
					 "channels"};

static int refuse(const struct reader *reader, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), cold));

static int refuse(const struct reader *reader, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return base_error(WREATH_EINVAL, "%.256s, line %d, column %d: %s",
			  reader->name, reader->line, reader->column, text);
}

/* The nearest of @names, where the word is a slip of it. */
static const char *nearest(const char *word, const char *const *names, int n)
{
	unsigned int best = (unsigned int)strlen(word) / 3 + 2;
	const char *found = NULL;
	int i;

	for (i = 0; i < n; i++) {
		unsigned int d = base_distance(word, names[i]);

		if (d < best) {
			best = d;
			found = names[i];
		}
	}
	return found;
}

static int refuse_word(const struct reader *reader, const char *what,
		       const char *const *names, int n)
{
	const char *near = nearest(reader->word, names, n);
	char list[160] = "";
	size_t at = 0;
	int i;

	if (near)
		return refuse(reader, "'%s' is no %s; did you mean %s?",
			      reader->word, what, near);
	for (i = 0; i < n && at < sizeof(list); i++)
		at += (size_t)snprintf(list + at, sizeof(list) - at, " %s",
				       names[i]);
	return refuse(reader, "'%s' is no %s; there are:%s", reader->word, what,
		      list);
}

/* The next word of the line: 1, 0 at its end, or an error. */
static int next_word(struct reader *reader)
{
	size_t n = 0;

	reader->at += strspn(reader->at, " \t\r");
	reader->column = (int)(reader->at - reader->line_at) + 1;
	if (!*reader->at || *reader->at == '\n' || *reader->at == '#')
		return 0;
	n = strcspn(reader->at, " \t\r\n#");
	if (n >= sizeof(reader->word)) {
		snprintf(reader->word, sizeof(reader->word), "%.20s",
			 reader->at);
		return refuse(reader, "'%s...' has more than %d characters",
			      reader->word, WORD_BYTES - 1);
	}
	memcpy(reader->word, reader->at, n);
	reader->word[n] = 0;
	reader->at += n;
	return 1;
}

static int next_value(struct reader *reader, const char *of)
{
	int got = next_word(reader);

	if (got < 0)
		return got;
	return got ? 0 : refuse(reader, "%s needs a value", of);
}

static int find(const char *word, const char *const *names, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (!strcmp(word, names[i]))
			return i;
	return -1;
}

/* N, N-M or N-. */
static bool read_range(const char *text, bool is_size, uint64_t max,
		       uint64_t *low, uint64_t *high)
{
	char part[WORD_BYTES];
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
	uint64_t low, high;

	if (!read_range(reader->word, key == BYTES, max, &low, &high) ||
	    (key != BYTES && !low) || (key == CHANNELS && low != high)) {
		if (key == BYTES)
			return refuse(reader, "bytes '%s' is not a size or a "
				      "range of sizes, such as 64K-1M or 1M-",
				      reader->word);
		return refuse(reader, "%s '%s' is not a number%s from 1 to %d",
			      keys[key], reader->word,
			      key == CHANNELS ? "" : " or a range, such as "
						     "2-8 or 16-,", (int)max);
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
	const char *names[SCHED_N_ALGOS];
	int i;

	for (i = 0; i < SCHED_N_ALGOS; i++)
		names[i] = sched_algo_name((enum sched_algo)i);
	i = find(reader->word, names, SCHED_N_ALGOS);
	if (i < 0)
		return refuse_word(reader, "algorithm", names, SCHED_N_ALGOS);
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
	int got, err;

	while ((got = next_word(reader)) > 0) {
		int key = find(reader->word, keys, N_KEYS);

		if (key < 0)
			return refuse_word(reader, "key", keys, N_KEYS);
		if (is_given[key])
			return refuse(reader, "%s is given twice", keys[key]);
		is_given[key] = true;
		err = next_value(reader, keys[key]);
		if (!err)
			err = key == ALGO ? read_algo(reader, &rule)
					  : read_numbers(reader, (enum key)key,
							 &rule);
		if (err)
			return err;
	}
	if (got < 0)
		return got;
	if (!is_given[ALGO])
		return refuse(reader, "a rule needs an algo, such as algo "
				      "ring");
	if (tuning->n_rules == SCHED_RULES_MAX)
		return refuse(reader, "there are more than %d rules",
			      SCHED_RULES_MAX);
	tuning->rules[tuning->n_rules++] = rule;
	return 0;
}

/* ---- parameters ---- */

/* "node", or "rail N". */
static int read_tier(struct reader *reader, const char *knob, int *tier)
{
	static const char *const tiers[] = {"node", "rail"};
	int64_t rail;
	int err = next_value(reader, knob);
	int found;

	if (err)
		return err;
	found = find(reader->word, tiers, 2);
	if (found < 0)
		return refuse_word(reader, "place", tiers, 2);
	*tier = 0;
	if (!found)
		return 0;
	err = next_value(reader, "rail");
	if (err)
		return err;
	if (!base_parse_int(reader->word, 0, SCHED_RAILS_MAX - 1, &rail))
		return refuse(reader, "rail '%s' is not a number from 0 to %d",
			      reader->word, SCHED_RAILS_MAX - 1);
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
	double value;
	int tier = 0;
	int err = has_tier ? read_tier(reader, knobs[knob], &tier) : 0;

	if (!err)
		err = next_value(reader, knobs[knob]);
	if (err)
		return err;
	if (is_rate && !sched_parse_rate(reader->word, &value))
		return refuse(reader, "%s '%s' is not a rate, such as 100G "
			      "(bits a second) or 12.5GB (bytes a second)",
			      knobs[knob], reader->word);
	if (!is_rate && !sched_parse_time(reader->word, &value))
		return refuse(reader, "%s '%s' is not a time, such as 200ns, "
			      "5us or 1.5ms", knobs[knob], reader->word);
	if (tuning->is_given[knob][tier])
		return refuse(reader, "%s is given twice", knobs[knob]);
	tuning->is_given[knob][tier] = true;
	tuning->given[knob][tier] = value;
	err = next_word(reader);
	if (err > 0)
		return refuse(reader, "'%s' is more than %s takes",
			      reader->word, knobs[knob]);
	return err;
}

static int read_line(struct reader *reader, struct sched_tuning *tuning)
{
	const char *names[SCHED_N_KNOBS + SCHED_N_COLLECTIVES + 1];
	int found, i;
	int got = next_word(reader);

	if (got <= 0)
		return got;
	for (i = 0; i < SCHED_N_KNOBS; i++)
		names[i] = knobs[i];
	names[i++] = "any";
	for (; i < (int)base_countof(names); i++)
		names[i] = sched_collective_name(
			(enum sched_collective)(i - SCHED_N_KNOBS - 1));
	found = find(reader->word, names, i);
	if (found < 0)
		return refuse_word(reader, "collective or parameter", names, i);
	if (found < SCHED_N_KNOBS)
		return read_knob(reader, (enum sched_knob)found, tuning);
	return read_rule(reader, found - SCHED_N_KNOBS - 1, tuning);
}

int sched_tuning_parse(const char *name, const char *text,
		       struct sched_tuning *tuning)
{
	struct reader reader = {.name = name, .at = text, .line = 1};
	const char *byte;
	int err = 0;

	memset(tuning, 0, sizeof(*tuning));
	while (*reader.at && !err) {
		reader.line_at = reader.at;
		err = read_line(&reader, tuning);
		reader.at += strcspn(reader.at, "\n");
		if (*reader.at) {
			reader.at++;
			reader.line++;
		}
	}
	/* FNV-1a, to tell files apart; it protects from nothing. */
	tuning->hash = 0xcbf29ce484222325u;
	for (byte = text; *byte; byte++)
		tuning->hash = (tuning->hash ^ (unsigned char)*byte) *
			       0x100000001b3u;
	return err;
}
