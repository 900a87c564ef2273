/* SPDX-License-Identifier: MIT */
/* How the ranks of a measurement wait for each other and agree. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/perf_measure.h"

/*
 * Pauses before the first yield where each rank has a core of its own, and
 * yields before sleeping: short enough that ranks that wait for one that fills
 * a gigabyte leave it the cores.
 */
#define N_SPINS 1000
#define N_YIELDS 2000
#define SLEEP_NS 100000

static void wait_a_little(const struct perf_team *team, unsigned int i)
{
	if (i < N_SPINS && team->n_ranks <= team->n_cores) {
		base_pause();
	} else if (i < N_SPINS + N_YIELDS) {
		sched_yield();
	} else {
		struct timespec nap = {0, SLEEP_NS};

		nanosleep(&nap, NULL);
	}
}

/*
 * The parent ends the wait when a rank dies, by must_stop, and the ranks when
 * the parent dies, by the signal that they have asked for.
 */
static bool page_barrier(struct perf_team *team)
{
	struct perf_page *page = team->page;
	unsigned int phase = atomic_load(&page->phase);
	unsigned int i;

	if (atomic_fetch_add(&page->n_arrived, 1) + 1 ==
	    (unsigned int)team->n_ranks) {
		/* Nobody arrives again before the phase has changed. */
		atomic_store(&page->n_arrived, 0);
		atomic_store(&page->phase, phase + 1);
		return true;
	}
	for (i = 0; atomic_load(&page->phase) == phase; i++) {
		if (atomic_load_explicit(&page->must_stop,
					 memory_order_relaxed))
			return false;
		wait_a_little(team, i < N_SPINS + N_YIELDS
					    ? i : N_SPINS + N_YIELDS);
	}
	return true;
}

static bool check(struct perf_team *team, int error)
{
	if (error)
		perf_team_fail(team, error, wreath_error_text());
	return !error;
}

bool perf_team_barrier(struct perf_team *team)
{
	int32_t one = 1;
	int32_t sum;

	if (!team->comm)
		return page_barrier(team);
	return check(team, wreath_all_reduce(&one, &sum, 1, WREATH_INT32,
					     WREATH_SUM, team->comm, NULL));
}

bool perf_team_max(struct perf_team *team, double *values, size_t n)
{
	const struct perf_page *page = team->page;
	size_t i;
	int r;

	if (team->comm)
		return check(team, wreath_all_reduce(values, values, n,
						     WREATH_FLOAT64,
						     WREATH_MAX, team->comm,
						     NULL));
	memcpy(team->page->slots + (size_t)team->rank * PERF_SAMPLES, values,
	       n * sizeof(*values));
	if (!page_barrier(team))
		return false;
	for (r = 0; r < team->n_ranks; r++) {
		const double *slot = page->slots + (size_t)r * PERF_SAMPLES;

		for (i = 0; i < n; i++) {
			if (slot[i] > values[i])
				values[i] = slot[i];
		}
	}
	/* The slots must not be written again while others still read. */
	return page_barrier(team);
}

bool perf_team_gather(struct perf_team *team, const void *mine, size_t bytes,
		      void *all)
{
	unsigned char *to = all;
	int r;

	if (team->comm) {
		/* Every rank adds its record to the others' zeros. */
		memset(to, 0, (size_t)team->n_ranks * bytes);
		memcpy(to + (size_t)team->rank * bytes, mine, bytes);
		return check(team, wreath_all_reduce(
					   to, to,
					   (size_t)team->n_ranks * bytes,
					   WREATH_UINT8, WREATH_SUM,
					   team->comm, NULL));
	}
	memcpy(team->page->slots + (size_t)team->rank * PERF_SAMPLES, mine,
	       bytes);
	if (!page_barrier(team))
		return false;
	for (r = 0; r < team->n_ranks; r++)
		memcpy(to + (size_t)r * bytes,
		       team->page->slots + (size_t)r * PERF_SAMPLES, bytes);
	return page_barrier(team);
}

void perf_team_fail(struct perf_team *team, int code, const char *text)
{
	struct perf_page *page = team->page;
	int none = 0;

	if (atomic_compare_exchange_strong(&page->failing, &none, 1)) {
		page->fail_rank = team->rank;
		page->fail_code = code;
		snprintf(page->fail_text, sizeof(page->fail_text), "%s", text);
		/* Pairs with the load in perf_failure(). */
		atomic_store(&page->failing, 2);
	}
	atomic_store(&page->must_stop, 1);
}

int perf_failure(const struct perf_page *page, char *text, size_t size)
{
	/* Pairs with the store in perf_team_fail(). */
	if (atomic_load(&page->failing) != 2)
		return 0;
	snprintf(text, size, "rank %d: %s: %s", page->fail_rank,
		 wreath_error_name(page->fail_code), page->fail_text);
	fprintf(stderr, "wreath perf: %s\n", text);
	return page->fail_code == WREATH_ETIMEOUT ? BENCH_TIMEOUT
						  : BENCH_WREATH;
}
