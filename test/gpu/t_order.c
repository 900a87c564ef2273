/* SPDX-License-Identifier: MIT */
/*
 * Goal: a collective on a CUDA stream is in its order and never holds up its
 * caller: the call returns at once while the stream is far from it, nothing is
 * touched before the stream comes there, what follows on the stream finds the
 * result, and other streams go on.
 * Method: two ranks on one GPU; streams are held by a word of memory that they
 * wait for, and ranks come late on purpose.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda.c"
/* Its buffers are on a GPU already. */
#define GPU_OWN_NAMES
#include "test/loop/ranks.h"

#define COUNT ((size_t)1 << 18)
#define BYTES (COUNT * sizeof(float))
#define N_CALLS 10
#define HELD_MS 200
/*
 * All calls together: far less than what they would wait for, and far more than
 * they need (some 10 us each on an idle machine).
 */
#define CALLS_MS 50
#define BLANK 0x5a

/* What a rank has on the GPU, twice where two streams are looked at. */
struct side {
	struct bench_gpu gpu;
	struct wreath_stream *stream;
	_Atomic uint32_t *word; /* pinned: what the stream may be held by */
	void *send, *recv, *later;
};

static float host[COUNT];

static int side_open(struct rank *rank, struct side *side)
{
	void *word;
	int err = bench_gpu_open(0, &side->gpu);
	size_t i;

	if (!err)
		err = mem_pinned_new(4096, &word);
	if (err)
		return err;
	side->word = word;
	atomic_store(side->word, 0);
	err = wreath_mem_alloc_gpu(BYTES, 0, &side->send);
	if (!err)
		err = wreath_mem_alloc_gpu(BYTES, 0, &side->recv);
	if (!err)
		err = wreath_mem_alloc_gpu(BYTES, 0, &side->later);
	if (!err)
		err = wreath_stream_from_cuda(side->gpu.stream, &side->stream);
	for (i = 0; i < COUNT; i++)
		host[i] = (float)(rank->rank + 1);
	if (!err)
		err = bench_gpu_copy(&side->gpu, side->send, host, BYTES);
	if (!err)
		err = bench_gpu_put_fill(&side->gpu, side->recv, BLANK, BYTES);
	if (!err)
		err = bench_gpu_put_fill(&side->gpu, side->later, BLANK, BYTES);
	return err ? err : bench_gpu_wait(&side->gpu);
}

static void side_close(struct side *side)
{
	if (side->word)
		atomic_store(side->word, 1);
	wreath_stream_destroy(side->stream);
	wreath_mem_free(side->send);
	wreath_mem_free(side->recv);
	wreath_mem_free(side->later);
	mem_pinned_free((void *)(uintptr_t)side->word);
	bench_gpu_close(&side->gpu);
}

static int hold(struct side *side)
{
	return bench_gpu_put_wait(&side->gpu,
				  (const uint32_t *)(uintptr_t)side->word, 1);
}

static int reduce(struct side *side, struct wreath_comm *comm)
{
	return wreath_all_reduce(side->send, side->recv, COUNT, WREATH_FLOAT32,
				 WREATH_SUM, comm, side->stream);
}

/* On the stream, behind the collective, so that what it finds is kept. */
static int put_look(struct side *side)
{
	int err = bench_gpu_put_copy(&side->gpu, side->later, side->recv,
				     BYTES);

	return err ? err : bench_gpu_put_fill(&side->gpu, side->recv, BLANK,
					      BYTES);
}

static int expect(struct rank *rank, struct side *side, float want)
{
	int err = bench_gpu_wait(&side->gpu);
	size_t i;

	if (!err)
		err = wreath_stream_wait(side->stream);
	if (!err)
		err = bench_gpu_copy(&side->gpu, host, side->later, BYTES);
	for (i = 0; i < COUNT && !err; i++)
		if (host[i] < want || host[i] > want)
			err = rank_broken(rank, "element %zu is %g, not %g", i,
					  (double)host[i], (double)want);
	return err;
}

static int expect_untouched(struct rank *rank, struct side *side,
			    struct bench_gpu *other)
{
	unsigned char bytes[64];
	size_t i;
	int err = bench_gpu_copy(other, bytes, side->recv, sizeof(bytes));

	for (i = 0; i < sizeof(bytes) && !err; i++)
		if (bytes[i] != BLANK)
			err = rank_broken(rank, "it was written too early");
	if (!err && wreath_stream_query(side->stream) != WREATH_EAGAIN)
		err = rank_broken(rank, "a held stream is done");
	return err;
}

/* ---- calls return at once ---- */

static int call_on_held(struct rank *rank, struct side *side)
{
	double start, longest = 0;
	double all = 0;
	int err = hold(side);
	int i;

	for (i = 0; i < N_CALLS && !err; i++) {
		start = ranks_now();
		err = reduce(side, rank->comm);
		start = ranks_now() - start;
		all += start;
		if (start > longest)
			longest = start;
	}
	rank_result(rank)->values[0] = (uint64_t)(all / N_CALLS * 1e9);
	rank_result(rank)->values[1] = (uint64_t)(longest * 1e9);
	if (!err && all * 1000 > CALLS_MS)
		err = rank_broken(rank, "%d calls took %.1f ms", N_CALLS,
				  all * 1000);
	return err;
}

static int use_held(struct rank *rank, struct side *side,
		    struct bench_gpu *other)
{
	int err;

	/* What is set up by the first call is not the matter. */
	err = reduce(side, rank->comm);
	if (!err)
		err = put_look(side);
	if (!err)
		err = expect(rank, side, 3);
	if (!err && !rank_barrier(rank))
		err = rank_broken(rank, "the others have not come");
	if (!err)
		err = call_on_held(rank, side);
	if (!err)
		err = put_look(side);
	ranks_sleep_ms(HELD_MS);
	if (!err)
		err = expect_untouched(rank, side, other);
	atomic_store(side->word, 1);
	return err ? err : expect(rank, side, 3);
}

static int run_held(struct rank *rank)
{
	struct side side = {.word = NULL};
	struct bench_gpu other = {.ctx = NULL};
	int err = side_open(rank, &side);

	if (!err)
		err = bench_gpu_open(0, &other);
	if (!err)
		err = use_held(rank, &side, &other);
	bench_gpu_close(&other);
	side_close(&side);
	return err;
}

static void run_two(rank_body *body, const char *say)
{
	struct ranks run = {.n = 2, .body = body, .seconds = 60};
	int r;

	ranks_start(&run);
	ranks_join(&run);
	ranks_expect_ok(&run);
	for (r = 0; say && r < 2; r++)
		print_message("rank %d: %s %.1f us, %.1f us at most\n", r, say,
			      (double)run.shared->results[r].values[0] / 1e3,
			      (double)run.shared->results[r].values[1] / 1e3);
	ranks_end(&run);
}

static void calls_return_while_the_stream_is_held(void **state)
{
	(void)state;
	run_two(run_held, "a call on a held stream takes");
}

/* ---- the stream waits for slow ranks, the caller does not ---- */

static int run_late(struct rank *rank)
{
	struct side side = {.word = NULL};
	int err = side_open(rank, &side);
	double start;

	if (!err)
		err = reduce(&side, rank->comm);
	/* What is set up by the first call is not the matter. */
	if (!err)
		err = wreath_stream_wait(side.stream);
	if (!err && !rank_barrier(rank))
		err = rank_broken(rank, "the others have not come");
	if (rank->rank == 1)
		ranks_sleep_ms(HELD_MS);
	start = ranks_now();
	if (!err)
		err = reduce(&side, rank->comm);
	if (!err)
		err = put_look(&side);
	start = ranks_now() - start;
	if (!err && start * 1000 > CALLS_MS)
		err = rank_broken(rank, "the call took %.1f ms", start * 1000);
	if (!err)
		err = expect(rank, &side, 3);
	side_close(&side);
	return err;
}

static void what_follows_waits_for_slow_ranks(void **state)
{
	(void)state;
	run_two(run_late, NULL);
}

/* ---- streams are apart ---- */

static int use_both(struct rank *rank, struct side *held, struct side *free,
		    struct wreath_comm *comm)
{
	int err = hold(held);

	if (!err)
		err = reduce(held, rank->comm);
	if (!err)
		err = put_look(held);
	if (!err)
		err = reduce(free, comm);
	if (!err)
		err = put_look(free);
	if (!err)
		err = expect(rank, free, 3);
	if (!err && wreath_stream_query(held->stream) != WREATH_EAGAIN)
		err = rank_broken(rank, "a held stream is done");
	/* The other rank may need ours to be held no longer than this. */
	if (!err && !rank_barrier(rank))
		err = rank_broken(rank, "the others have not come");
	atomic_store(held->word, 1);
	return err ? err : expect(rank, held, 3);
}

static int run_both(struct rank *rank)
{
	struct side sides[2] = {{.word = NULL}, {.word = NULL}};
	struct wreath_comm *comm = NULL;
	int err = side_open(rank, &sides[0]);

	if (!err)
		err = side_open(rank, &sides[1]);
	if (!err)
		err = rank_join(rank, &comm);
	/* What loads or connects at its first use does so here. */
	if (!err)
		err = reduce(&sides[0], rank->comm);
	if (!err)
		err = reduce(&sides[1], comm);
	if (!err)
		err = wreath_stream_wait(sides[0].stream);
	if (!err)
		err = wreath_stream_wait(sides[1].stream);
	if (!err)
		err = use_both(rank, &sides[0], &sides[1], comm);
	side_close(&sides[0]);
	side_close(&sides[1]);
	if (comm && wreath_comm_destroy(comm) && !err)
		err = rank_broken(rank, "%s", wreath_error_text());
	return err;
}

static void a_held_stream_holds_up_no_other(void **state)
{
	(void)state;
	run_two(run_both, NULL);
}

/* ---- more held streams than the hardware has queues ---- */

/*
 * Streams share the hardware's queues, 8 by default and 32 at most
 * (CUDA_DEVICE_MAX_CONNECTIONS): what the library does may not stand in one
 * behind a stream that is held.
 */
#define N_HELD 40

static int run_many(struct rank *rank)
{
	static struct bench_gpu held[N_HELD];
	struct side side = {.word = NULL};
	int err = side_open(rank, &side);
	int n = 0;

	if (!err)
		err = reduce(&side, rank->comm);
	if (!err)
		err = wreath_stream_wait(side.stream);
	while (n < N_HELD && !err) {
		err = bench_gpu_open(0, &held[n]);
		if (err)
			break;
		n++;
		err = bench_gpu_put_wait(&held[n - 1],
					 (const uint32_t *)(uintptr_t)side.word,
					 1);
	}
	if (!err)
		err = wreath_all_reduce(side.send, side.recv, COUNT,
					WREATH_FLOAT32, WREATH_SUM, rank->comm,
					NULL);
	/* Now those that are held may go, and be looked at in order. */
	if (!err && !rank_barrier(rank))
		err = rank_broken(rank, "the others have not come");
	if (side.word)
		atomic_store(side.word, 1);
	if (!err)
		err = put_look(&side);
	if (!err)
		err = expect(rank, &side, 3);
	while (n) {
		bench_gpu_wait(&held[--n]);
		bench_gpu_close(&held[n]);
	}
	side_close(&side);
	return err;
}

static void held_streams_in_any_number_hold_up_no_other(void **state)
{
	(void)state;
	run_two(run_many, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_return_while_the_stream_is_held),
		cmocka_unit_test(what_follows_waits_for_slow_ranks),
		cmocka_unit_test(a_held_stream_holds_up_no_other),
		cmocka_unit_test(held_streams_in_any_number_hold_up_no_other),
	};
	int n;

	if (bench_gpu_probe(&n)) {
		printf("%s\n", wreath_error_text());
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
