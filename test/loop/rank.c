/* SPDX-License-Identifier: MIT */
/* What the ranks call; ranks.c has what the test calls. */
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>

#include "test/loop/ranks.h"

/* How long ranks wait for each other outside of wreath. */
#define WAIT_SECONDS 50.0

int rank_broken(struct rank *rank, const char *fmt, ...)
{
	struct rank_result *result = rank_result(rank);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(result->text, sizeof(result->text), fmt, ap);
	va_end(ap);
	return RANKS_BROKEN;
}

bool ranks_wait_for(const _Atomic unsigned int *at, unsigned int n)
{
	double end = ranks_now() + WAIT_SECONDS;

	while (atomic_load(at) < n) {
		if (ranks_now() > end)
			return false;
		ranks_sleep_ms(1);
	}
	return true;
}

bool rank_barrier(struct rank *rank)
{
	struct ranks_shared *shared = rank->run->shared;

	atomic_fetch_add(&shared->n_in_barrier, 1);
	rank->n_barriers++;
	return ranks_wait_for(&shared->n_in_barrier,
			rank->n_barriers * (unsigned int)rank->n_ranks);
}

void rank_reach(struct rank *rank)
{
	atomic_fetch_add(&rank->run->shared->n_reached, 1);
}

bool rank_await(struct rank *rank, unsigned int n)
{
	return ranks_wait_for(&rank->run->shared->n_allowed, n);
}

const struct wreath_unique_id *rank_id(struct rank *rank)
{
	struct ranks_shared *shared = rank->run->shared;
	struct wreath_unique_id *id = &shared->ids[rank->n_ids++ % RANKS_IDS];

	if (rank->rank) {
		if (!ranks_wait_for(&shared->n_ids, rank->n_ids))
			return NULL;
		return id;
	}
	if (wreath_unique_id_create(id))
		return NULL;
	atomic_store(&shared->n_ids, rank->n_ids);
	return id;
}

int rank_join(struct rank *rank, struct wreath_comm **comm)
{
	const struct wreath_unique_id *id = rank_id(rank);

	if (!id)
		return rank_broken(rank, "there is no id: %s",
				   wreath_error_text());
	return wreath_comm_init(id, rank->rank, rank->n_ranks, comm);
}

void rank_run(struct rank *rank)
{
	struct rank_result *result = rank_result(rank);
	double start = ranks_now();
	int code = 0;

	result->pid = getpid();
	gpu_enter(rank->rank);
	if (!rank->run->no_comm)
		code = rank_join(rank, &rank->comm);
	if (!code)
		code = rank->run->body(rank);
	if (code && code != RANKS_BROKEN)
		snprintf(result->text, sizeof(result->text), "%s",
			 wreath_error_text());
	if (rank->comm) {
		int err = wreath_comm_destroy(rank->comm);

		/* The first failure is the one to be told. */
		if (err && !code) {
			snprintf(result->text, sizeof(result->text),
				 "wreath_comm_destroy: %s",
				 wreath_error_text());
			code = err;
		}
	}
	gpu_leave();
	result->code = code;
	result->seconds = ranks_now() - start;
	atomic_store(&result->has_ended, true);
}

int rank_sums_members(struct rank *rank, struct wreath_comm *comm,
		      uint64_t members)
{
	uint64_t words[3] = {UINT64_C(1) << rank->rank, 1, 0};
	int want = __builtin_popcountll(members &
					((UINT64_C(1) << rank->rank) - 1));
	int err = wreath_all_reduce(words, words, 3, WREATH_UINT64, WREATH_SUM,
				    comm, NULL);

	if (err)
		return err;
	if (words[0] != members || words[2] ||
	    words[1] != (uint64_t)__builtin_popcountll(members) ||
	    wreath_comm_rank(comm) != want)
		return rank_broken(rank, "members %llx, not %llx, rank %d",
				   (unsigned long long)words[0],
				   (unsigned long long)members,
				   wreath_comm_rank(comm));
	return 0;
}
