/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "draft.h"

/*
 * Where one algorithm takes over from the other, in bytes of the vector: up to
 * @oneshot_max everyone sends everything, from @ring_min on the ring runs, and
 * between them each rank reduces a share.
 *
 * Oneshot has one wait where twoshot has two, but sends n/2 times as much.
 * The ring has 2(n - 1) waits, but each rank talks to one peer only; where
 * ranks outnumber cores each wait costs a yield (about 5 us on a 2-core
 * machine), which the ring never earns back there.  Oneshot's numbers are
 * measured (`wreath perf --algo all`) with 2, 4 and 8 ranks on 2 cores, and
 * carried on from there; the ring's are estimates.
 */
static const struct row {
	int n_ranks_max;
	size_t oneshot_max;
	size_t ring_min;
} rows[] = {
	{2, 1 << 10, SIZE_MAX}, /* a ring of two is twoshot in one lane */
	{4, 2 << 10, SIZE_MAX},
	{8, 2 << 10, SIZE_MAX},
	{16, 1 << 10, 256 << 20},
	{SCHED_RANKS_MAX, 1 << 10, 64 << 20},
};

/*
 * Two ranks with a network between them: a message costs much more than its
 * bytes, and one of several lanes gains nothing (measured on soft-RoCE: oneshot
 * 0.7 of the ring's time at 8 KB and the same at 64 KB, twoshot 1.15 at 4 MB).
 */
#define APART_ONESHOT_MAX (32 << 10)

enum sched_algo sched_choose(int n_ranks, size_t bytes, unsigned int settings)
{
	bool crowded = settings & SCHED_CROWDED;
	const struct row *row = rows;

	if (n_ranks <= 1)
		return SCHED_ONESHOT;
	if (n_ranks == 2 && (settings & SCHED_APART))
		return bytes <= APART_ONESHOT_MAX ? SCHED_ONESHOT : SCHED_RING;
	/* One fold takes no more sources. */
	if (n_ranks > SCHED_DIRECT_RANKS_MAX)
		return SCHED_RING;
	while (n_ranks > row->n_ranks_max &&
	       row < &rows[base_countof(rows) - 1])
		row++;
	if (bytes <= row->oneshot_max)
		return SCHED_ONESHOT;
	if (!crowded && bytes >= row->ring_min)
		return SCHED_RING;
	return SCHED_TWOSHOT;
}

/* ---- the chooser ---- */

/* One size and who is asked about it. */
struct asked {
	const struct sched_chooser *chooser;
	const struct sched_shape *shape;
	const struct sched_tuning *tuning;
	unsigned int settings;
};

double sched_chooser_seconds(const struct sched_chooser *chooser,
			     enum sched_algo algo, size_t bytes)
{
	if ((unsigned int)algo >= SCHED_N_ALGOS || !chooser->has_form[algo])
		return -1;
	return sched_seconds(bytes <= SCHED_ONE_CHANNEL_MAX
				     ? &chooser->narrow[algo]
				     : &chooser->stats[algo],
			     &chooser->cost, bytes);
}

static bool rule_fits(const struct sched_rule *rule, const struct asked *asked,
		      size_t bytes)
{
	const struct sched_shape *shape = asked->shape;
	int n_nodes = shape->n_nodes > 1 ? shape->n_nodes : 1;

	return (rule->collective < 0 ||
		rule->collective == (int)shape->collective) &&
	       shape->n_ranks >= rule->ranks_min &&
	       shape->n_ranks <= rule->ranks_max &&
	       n_nodes >= rule->nodes_min && n_nodes <= rule->nodes_max &&
	       bytes >= rule->bytes_min && bytes <= rule->bytes_max &&
	       asked->chooser->has_form[rule->algo];
}

static bool ask_rules(const struct asked *asked, size_t bytes,
		      struct sched_span *span)
{
	int i;

	for (i = 0; asked->tuning && i < asked->tuning->n_rules; i++) {
		const struct sched_rule *rule = &asked->tuning->rules[i];

		if (!rule_fits(rule, asked, bytes))
			continue;
		span->algo = rule->algo;
		span->n_channels = rule->n_channels;
		span->is_ruled = true;
		return true;
	}
	return false;
}

/*
 * The table above, where it was measured: plain ports of one host, and two
 * ranks with one rail between them.
 */
static bool ask_table(const struct asked *asked, size_t bytes,
		      struct sched_span *span)
{
	const struct sched_shape *shape = asked->shape;
	enum sched_algo algo;
	bool is_pair = shape->n_ranks == 2 &&
		       (asked->settings & SCHED_APART) &&
		       asked->chooser->cost.n_rails <= 1;

	if ((!asked->chooser->cost.is_plain && !is_pair) ||
	    (shape->collective != SCHED_ALL_REDUCE &&
	     shape->collective != SCHED_BARRIER) ||
	    shape->n_ranks > SCHED_DIRECT_RANKS_MAX)
		return false;
	algo = sched_choose(shape->n_ranks, bytes,
			    asked->settings);
	if (!asked->chooser->has_form[algo])
		return false;
	span->algo = algo;
	span->is_ruled = true;
	return true;
}

/* Where predictions are as good as equal the one with fewer messages wins. */
#define EQUAL 0.9999
static const enum sched_algo simplest_first[SCHED_N_ALGOS] = {
	SCHED_ONESHOT, SCHED_DIRECT, SCHED_TWOSHOT, SCHED_RING, SCHED_HALVING,
	SCHED_TREE, SCHED_SPLIT_RING,
};

static struct sched_span choose(const struct asked *asked, size_t bytes)
{
	struct sched_span span = {.bytes_max = bytes};
	double least = -1;
	int i;

	if (ask_rules(asked, bytes, &span))
		return span;
	if (asked->shape->n_channels > 1 && bytes <= SCHED_ONE_CHANNEL_MAX)
		span.n_channels = 1;
	if (ask_table(asked, bytes, &span))
		return span;
	for (i = 0; i < SCHED_N_ALGOS; i++) {
		double seconds = sched_chooser_seconds(
			asked->chooser, simplest_first[i], bytes);

		if (seconds < 0 || (least >= 0 && seconds >= EQUAL * least))
			continue;
		least = seconds;
		span.algo = simplest_first[i];
	}
	return span;
}

static bool is_same(const struct sched_span *a, const struct sched_span *b)
{
	return a->algo == b->algo && a->n_channels == b->n_channels &&
	       a->is_ruled == b->is_ruled;
}

/* One more span, up to @bytes_max; a full list lets the last one go on. */
static void append(struct sched_chooser *chooser, const struct sched_span *span,
		   size_t bytes_max)
{
	uint32_t n = chooser->n_spans;

	if (!n || (n < SCHED_SPANS_MAX && !is_same(&chooser->spans[n - 1],
						   span))) {
		chooser->spans[n] = *span;
		chooser->n_spans = ++n;
	}
	chooser->spans[n - 1].bytes_max = bytes_max;
}

/* Between @from, which chooses as @low, and @to the choice changes: where. */
static size_t last_alike(const struct asked *asked, size_t from, size_t to,
			 const struct sched_span *low)
{
	while (to - from > 1) {
		size_t middle = from + (to - from) / 2;
		struct sched_span span = choose(asked, middle);

		if (is_same(&span, low))
			from = middle;
		else
			to = middle;
	}
	return from;
}

/* Sizes are looked at in steps of a quarter of a power of two. */
static size_t next_size(size_t bytes)
{
	size_t power = 4;

	while (power <= bytes / 2)
		power *= 2;
	return bytes + power / 4;
}

#define SIZE_LAST ((size_t)1 << 40)

static void fill_spans(struct sched_chooser *chooser, const struct asked *asked)
{
	struct sched_span low = choose(asked, 0);
	size_t at = 0;

	while (at < SIZE_LAST) {
		size_t to = next_size(at);
		struct sched_span high = choose(asked, to);

		/* Twice in one step is possible where rules are narrow. */
		while (!is_same(&low, &high)) {
			size_t last = last_alike(asked, at, to, &low);

			append(chooser, &low, last);
			at = last + 1;
			low = choose(asked, at);
		}
		at = to;
	}
	append(chooser, &low, SIZE_MAX);
}

/* Whoever has no form is left out, without a word. */
static int count_forms(struct sched_chooser *chooser,
		       const struct sched_shape *shape)
{
	struct sched_shape form = *shape;
	bool any = false;
	int largest, err, i;

	form.algo = SCHED_RING;
	err = sched_check_range(&form, 0, &largest);
	for (i = 0; !err && i < SCHED_N_ALGOS; i++) {
		form.algo = (enum sched_algo)i;
		if (!sched_generator(form.collective, form.algo) ||
		    !sched_fan_fits(&form, largest))
			continue;
		chooser->has_form[i] = true;
		any = true;
		form.n_channels = shape->n_channels;
		err = sched_stats_make(&form, &chooser->cost,
				       &chooser->stats[i]);
		chooser->narrow[i] = chooser->stats[i];
		form.n_channels = 1;
		if (!err && shape->n_channels > 1)
			err = sched_stats_make(&form, &chooser->cost,
					       &chooser->narrow[i]);
	}
	if (err)
		return err;
	return any ? 0 : base_error(WREATH_EUNSUP, "no algorithm has a form "
				    "for %s", sched_collective_name(
						      form.collective));
}

int sched_chooser_init(struct sched_chooser *chooser,
		       const struct sched_shape *shape,
		       const struct sched_cost *cost,
		       const struct sched_tuning *tuning,
		       unsigned int settings)
{
	struct asked asked = {chooser, shape, tuning, settings};
	const char *fault;
	int err;

	memset(chooser, 0, sizeof(*chooser));
	chooser->cost = *cost;
	if (tuning)
		sched_tuning_apply(tuning, &chooser->cost);
	fault = sched_cost_fault(&chooser->cost);
	if (fault)
		return base_error(WREATH_EINVAL, "cost of a schedule: %s",
				  fault);
	err = count_forms(chooser, shape);
	if (!err)
		fill_spans(chooser, &asked);
	return err;
}
