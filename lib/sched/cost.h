/* SPDX-License-Identifier: MIT */
/*
 * What a schedule costs, and which one is the cheapest: part of sched's door,
 * included by it.
 *
 * All of it is pure: equal parameters give equal numbers, so that ranks that
 * have the same parameters choose alike.  Times are seconds, rates bytes a
 * second, and bytes those of the whole vector, all blocks together.
 */
#ifndef SCHED_COST_H
#define SCHED_COST_H

#include "sched/sched.h"

#define SCHED_RAILS_MAX SCHED_CHANNELS_MAX
/* Where a message goes: tier 0 is within a node, tier 1 + r is rail r. */
#define SCHED_TIERS (1 + SCHED_RAILS_MAX)
/* Shapes of more ranks are not traced, but scaled from a smaller one. */
#define SCHED_TRACE_RANKS_MAX 32

struct sched_tier {
	double latency;	  /* from the send of a message to its arrival */
	double overhead;  /* of a rank's time, for a message, at each end */
	double bandwidth; /* of a rank, one direction; 0: the copy is all */
};

struct sched_cost {
	struct sched_tier tiers[SCHED_TIERS];
	int n_rails; /* 0: there is one node */
	/* How rails share a vector; all 0: as their bandwidths. */
	double weights[SCHED_RAILS_MAX];
	double fold; /* bytes that a rank reads in a second to combine them */
	double copy; /* and that it writes */
	double wait; /* until a rank's turn on its core comes; 0: has its own */
	double crowd; /* ranks to a core, 1 at least */
	double call; /* of a call, whatever it does */
	uint64_t slot_bytes;
	int n_slots;
	bool is_mapped; /* ranks of a node read and write each other's memory */
	/*
	 * All ranks reach each other by unpaced soft ports of one host: what
	 * was measured there stands above what the model says.
	 */
	bool is_plain;
};

/*
 * For @n_ranks of one host on @n_cores cores: soft ports, no rails.  The
 * numbers are fitted to measurements; cost.c has their origin.
 */
void sched_cost_default(struct sched_cost *cost, int n_ranks, int n_cores);

/* What one rank has measured, with the ranks that it was paired with. */
struct sched_measured {
	double latency[SCHED_TIERS];   /* negative: was not measured */
	double overhead[SCHED_TIERS];  /* 0: was not measured */
	double bandwidth[SCHED_TIERS]; /* 0: without a limit of its own */
	uint32_t maps_all; /* memory of all others of its node is mapped */
	uint32_t is_plain; /* ... of all ranks, and unpaced */
};

/*
 * Take over what the ranks [n] have measured: the longest latency, the lowest
 * bandwidth; what nobody has measured stays.  Equal lists give equal bits.
 */
void sched_cost_measured(struct sched_cost *cost,
			 const struct sched_measured *all, int n);

/* NULL, or what is wrong: a number that no machine has. */
const char *sched_cost_fault(const struct sched_cost *cost);

/*
 * The part of a block that channel @channel has: as the rate of its rail, of
 * those that the channels share, demands.
 */
double sched_channel_share(const struct sched_shape *shape,
			   const struct sched_cost *cost, int channel);

/* Work: of a chain of messages, or of a rank. */
struct sched_work {
	double messages[SCHED_TIERS];
	double moved[SCHED_TIERS]; /* their bytes, in parts of the pass's */
	double folded, copied; /* read and written, in parts of the pass */
};

/* What counts of a shape's schedules, for all of its sizes. */
struct sched_stats {
	/*
	 * The longest chain of the first pass, and by what each further pass
	 * ends later: for an empty vector, and for full slots.
	 */
	struct sched_work first[2], again[2];
	struct sched_work busy; /* what a rank has in a pass, the most */
	double pass_slots;	/* pieces of the longest kind in a pass */
	bool is_in_place;	/* one pass does it all, whatever its size */
};

/*
 * Count.  The schedules of all ranks are made and traced, once; @cost weighs
 * the chains against each other.  WREATH_EINVAL, WREATH_EUNSUP as
 * sched_make(); WREATH_ENOMEM.
 */
int sched_stats_make(const struct sched_shape *shape,
		     const struct sched_cost *cost, struct sched_stats *stats);

/* Passes over @bytes, and the seconds that they take. */
double sched_passes(const struct sched_stats *stats,
		    const struct sched_cost *cost, size_t bytes);
double sched_seconds(const struct sched_stats *stats,
		     const struct sched_cost *cost, size_t bytes);

/* ---- tuning.c: a file of rules; units.c ---- */

#define SCHED_RULES_MAX 64

struct sched_rule {
	int collective; /* enum sched_collective, or -1: any */
	enum sched_algo algo;
	int n_channels; /* 0: as the communicator has */
	int ranks_min, ranks_max, nodes_min, nodes_max;
	uint64_t bytes_min, bytes_max;
};

enum sched_knob {
	SCHED_LATENCY,
	SCHED_OVERHEAD,
	SCHED_BANDWIDTH,
	SCHED_FOLD,
	SCHED_COPY,
	SCHED_WAIT,
	SCHED_N_KNOBS,
};

struct sched_tuning {
	int n_rules;
	struct sched_rule rules[SCHED_RULES_MAX]; /* the first that fits */
	/* Parameters given, by knob and tier (0 where it has none). */
	bool is_given[SCHED_N_KNOBS][SCHED_TIERS];
	double given[SCHED_N_KNOBS][SCHED_TIERS];
	uint64_t hash; /* of the text; 0: there is none */
};

/*
 * Read the text of a tuning file; @name is what the errors call it.
 * WREATH_EINVAL with name, line and column.
 */
int sched_tuning_parse(const char *name, const char *text,
		       struct sched_tuning *tuning);
/* What the file says of the machine stands above what was measured. */
void sched_tuning_apply(const struct sched_tuning *tuning,
			struct sched_cost *cost);
/*
 * 400G, 400Gb or 400Gbit is bits, 50GB bytes a second, decimal, with or
 * without /s behind; 5us, 1.5ms, 200ns.
 * False for anything else, and for what is not above zero (a time may be 0).
 */
bool sched_parse_rate(const char *text, double *bytes_a_second);
bool sched_parse_time(const char *text, double *seconds);

/* ---- choose.c ---- */

#define SCHED_SPANS_MAX 64
/*
 * Vectors up to here go by one channel, the first, which has the fastest rail:
 * each channel costs messages of its own, which cost more than they save where
 * there is little to share (8 us a message at 2 Gb/s, or 0.3 us at 100 Gb/s,
 * are the time of 2 to 4 KB, and a second rail takes half at best).
 */
#define SCHED_ONE_CHANNEL_MAX (16 << 10)

/* Which algorithm for which size: made once, looked up in each call. */
struct sched_chooser {
	struct sched_cost cost;
	struct sched_stats stats[SCHED_N_ALGOS];
	/* On one channel, for what is not worth more: SCHED_ONE_CHANNEL_MAX. */
	struct sched_stats narrow[SCHED_N_ALGOS];
	bool has_form[SCHED_N_ALGOS];
	uint32_t n_spans;
	struct sched_span {
		size_t bytes_max; /* SIZE_MAX in the last */
		enum sched_algo algo;
		int n_channels; /* 0: all that the communicator has */
		bool is_ruled;	/* not by the model */
	} spans[SCHED_SPANS_MAX];
};

/*
 * For @shape, whatever its algo: the user's rules come first (@tuning, NULL:
 * none), then what was measured for plain ports, then the least of the
 * predictions, and of those that are as good as equal the simplest.
 * @settings: enum sched_setting, or'd.  WREATH_EUNSUP: no algorithm has a form
 * for the collective; WREATH_ENOMEM.
 */
int sched_chooser_init(struct sched_chooser *chooser,
		       const struct sched_shape *shape,
		       const struct sched_cost *cost,
		       const struct sched_tuning *tuning,
		       unsigned int settings);

static inline const struct sched_span *
sched_chooser_find(const struct sched_chooser *chooser, size_t bytes)
{
	const struct sched_span *span = chooser->spans;

	while (bytes > span->bytes_max)
		span++;
	return span;
}

/* Seconds by @algo; negative where it has no form. */
double sched_chooser_seconds(const struct sched_chooser *chooser,
			     enum sched_algo algo, size_t bytes);

#endif
