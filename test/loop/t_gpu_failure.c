/* SPDX-License-Identifier: MIT */
/*
 * Goal: whichever call of CUDA's driver fails, an operation goes on without it
 * where it can, or every rank is told what failed, and where, in time; nothing
 * is left behind.
 * Method: a small program of two ranks on simulated GPUs, run again and again,
 * in which the n-th call that the library makes in one rank fails.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/loop/gpu_inner.h"

#define N_RANKS 2
#define COUNT 100000 /* floats: several slots */
#define BOUND (RANKS_SLOW ? 40.0 : 12.0) /* seconds; the deadline is 5 */

struct trial {
	uint64_t n; /* the call that is to fail */
	const char *name;
};

struct work {
	struct rank *rank;
	struct wreath_comm *comm;
	struct CUstream_st *cuda;
	struct wreath_stream *stream;
	cu_ptr in, out;
};

static void *at(cu_ptr ptr)
{
	return (void *)(uintptr_t)ptr;
}

static void fill(const struct work *work)
{
	float *words = CU(fakeCudaAlias)(work->in, COUNT * sizeof(float));
	size_t i;

	for (i = 0; i < COUNT; i++)
		words[i] = (float)(work->rank->rank + 1) * (float)(i % 1000);
}

/* The first @n words of the output are @scale times what is in rank 0. */
static int check(const struct work *work, size_t n, float scale)
{
	const float *words = CU(fakeCudaAlias)(work->out,
					       COUNT * sizeof(float));
	size_t i;

	for (i = 0; i < n; i++)
		if (words[i] != scale * (float)(i % 1000))
			return rank_broken(work->rank, "word %zu of %zu is %g",
					   i, n, (double)words[i]);
	return 0;
}

static int reduce(const struct work *work, size_t n)
{
	int err = wreath_all_reduce(at(work->in), at(work->out), n,
				    WREATH_FLOAT32, WREATH_SUM, work->comm,
				    NULL);

	return err ? err : check(work, n, 3);
}

static int exchange(const struct work *work)
{
	int peer = !work->rank->rank;
	int err = wreath_group_start();

	if (!err)
		err = wreath_send(at(work->in), COUNT, WREATH_FLOAT32, peer,
				  work->comm, NULL);
	if (!err)
		err = wreath_recv(at(work->out), COUNT, WREATH_FLOAT32, peer,
				  work->comm, NULL);
	if (err) {
		wreath_group_end();
		return err;
	}
	err = wreath_group_end();
	return err ? err : check(work, COUNT, (float)(peer + 1));
}

static int run_in_stream(struct work *work)
{
	char text[2048];
	int err = wreath_stream_from_cuda(work->cuda, &work->stream);
	int later, i;

	for (i = 0; i < 3 && !err; i++)
		err = wreath_all_reduce(at(work->in), at(work->out), COUNT,
					WREATH_FLOAT32, WREATH_SUM, work->comm,
					work->stream);
	if (!work->stream)
		return err;
	/* What others wait for must not wait for this rank. */
	snprintf(text, sizeof(text), "%s", wreath_error_text());
	if (err)
		wreath_comm_abort(work->comm);
	later = wreath_stream_destroy(work->stream);
	CU(cuStreamSynchronize)(work->cuda);
	if (err)
		snprintf(rank_result(work->rank)->text, 2048, "%s", text);
	else if (later)
		err = later;
	return err ? err : check(work, COUNT, 3);
}

static int run(struct work *work)
{
	int err = rank_join(work->rank, &work->comm);

	if (!err)
		err = reduce(work, 5);
	if (!err)
		err = reduce(work, 6000);
	if (!err)
		err = reduce(work, COUNT);
	if (!err)
		err = exchange(work);
	return err ? err : run_in_stream(work);
}

static int body(struct rank *rank)
{
	const struct trial *trial = rank->arg;
	struct rank_result *result = rank_result(rank);
	struct work work = {.rank = rank};
	int err;

	OK(CU(cuMemAlloc_v2)(&work.in, COUNT * sizeof(float)));
	OK(CU(cuMemAlloc_v2)(&work.out, COUNT * sizeof(float)));
	OK(CU(cuStreamCreate)(&work.cuda, 1));
	fill(&work);
	if (rank->rank == 1)
		CU(fakeCudaFail)(trial->name, trial->n);
	err = run(&work);
	if (err && err != RANKS_BROKEN && !result->text[0])
		snprintf(result->text, sizeof(result->text), "%s",
			 wreath_error_text());
	atomic_store(&result->values[0], (uint64_t)-err);
	if (err && work.comm)
		wreath_comm_abort(work.comm);
	wreath_comm_destroy(work.comm);
	atomic_store(&result->values[1],
		     (uint64_t)CU(fakeCudaFail)(NULL, 0));
	/* These fail too, where it was the device that failed. */
	CU(cuStreamDestroy_v2)(work.cuda);
	CU(cuMemFree_v2)(work.in);
	CU(cuMemFree_v2)(work.out);
	return err == RANKS_BROKEN ? err : 0;
}

static bool names(const struct ranks *run, int rank, const char *word)
{
	return strstr(run->shared->results[rank].text, word);
}

/* Are the ranks well, or told?  *@is_over: there was no such call. */
static void judge(const struct ranks *run, const struct trial *trial,
		  bool *is_over)
{
	const struct rank_result *results = run->shared->results;
	int codes[N_RANKS];
	int i;

	ranks_expect_ok(run);
	for (i = 0; i < N_RANKS; i++) {
		codes[i] = -(int)results[i].values[0];
		if (getenv("VERBOSE"))
			printf("%s:%llu rank %d: %.2f s %s: %s\n", trial->name,
			       (unsigned long long)trial->n, i,
			       results[i].seconds, wreath_error_name(codes[i]),
			       results[i].text);
		if (results[i].seconds > BOUND)
			fail_msg("%s:%llu: rank %d took %.1f s: %s",
				 trial->name, (unsigned long long)trial->n, i,
				 results[i].seconds, results[i].text);
	}
	*is_over = results[1].values[1];
	if (!codes[0] && !codes[1])
		return;
	if (!codes[1] || !names(run, 1, "GPU") || !names(run, 1, "cu"))
		fail_msg("%s:%llu: rank 1 returned %s: %s", trial->name,
			 (unsigned long long)trial->n,
			 wreath_error_name(codes[1]), results[1].text);
	if (codes[0] && !names(run, 0, "rank 1"))
		fail_msg("%s:%llu: rank 0 returned %s: %s", trial->name,
			 (unsigned long long)trial->n,
			 wreath_error_name(codes[0]), results[0].text);
}

static bool try(const struct trial *trial)
{
	struct ranks ranks = {.n = N_RANKS, .body = body, .arg = trial,
			      .no_comm = true};
	bool is_over;

	ranks_start(&ranks);
	ranks_join(&ranks);
	judge(&ranks, trial, &is_over);
	ranks_end(&ranks);
	return !is_over;
}

static void every_rank_is_told_of_a_call_that_fails(void **state)
{
	uint64_t seed = ranks_seed();
	/* STEP=1 is all of them; else some, others each time. */
	uint64_t step = getenv("STEP") ? strtoull(getenv("STEP"), NULL, 0)
				       : 17;
	struct trial trial = {.name = "any"};

	(void)state;
	ranks_set("WREATH_TIMEOUT", "5s");
	trial.n = getenv("FIRST") ? strtoull(getenv("FIRST"), NULL, 0)
				  : 1 + seed % step;
	while (try(&trial))
		trial.n += step;
	printf("%llu calls\n", (unsigned long long)trial.n);
}

/* What the sweep may not come to. */
static void a_failure_names_the_function(void **state)
{
	static const char *const names[] = {
		"cuStreamGetCtx", "cuIpcOpenMemHandle_v2", "cuMemHostAlloc",
		"cuStreamCreateWithPriority", "cuStreamWaitValue32_v2",
		"cuLaunchKernel", "kernel",
	};
	size_t i;

	(void)state;
	ranks_set("WREATH_TIMEOUT", "5s");
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct trial trial = {.n = 1, .name = names[i]};

		if (!try(&trial))
			fail_msg("%s was not called", names[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			every_rank_is_told_of_a_call_that_fails, ranks_clean),
		cmocka_unit_test_teardown(a_failure_names_the_function,
					  ranks_clean),
	};

	setenv("RANKS_GPU", "1", 1);
	setenv("FAKE_CUDA", "devices=2,seed=7,late=0", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
