/* SPDX-License-Identifier: MIT */
/*
 * Goal: a communicator follows its buffers: from GPU to GPU and to the host,
 * in allocations that come and go at the same addresses, at any place in them,
 * on any stream, the legacy default one as well.
 * Method: seeded operations; each rank chooses for itself where its vectors
 * are, allocates them just before, and frees them just after.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/loop/gpu_inner.h"

#define N_GPUS 3
#define N_OPS RANKS_TIMES(40, 120, 1000)

enum place {
	ON_GPU, /* and the two behind it */
	MANAGED = ON_GPU + N_GPUS,
	PINNED,
	REGISTERED, /* with wreath */
	HEAP,
	N_PLACES,
};

struct vector {
	enum place place;
	int gpu; /* -1: none */
	void *block; /* as it was allocated */
	uint32_t *at, *seen; /* as the library gets it; as we read it */
};

struct mover {
	struct rank *rank;
	uint64_t all, own; /* chance of all ranks alike, and of this one */
	struct CUstream_st *cuda[N_GPUS]; /* [0]: the legacy stream */
	struct wreath_stream *streams[N_GPUS];
};

static void make(struct mover *m, struct vector *v, size_t bytes, size_t shift)
{
	size_t room = shift + bytes + 64;
	cu_ptr ptr = 0;

	v->gpu = -1;
	if (v->place < MANAGED) {
		v->gpu = (int)v->place;
		gpu_use(v->gpu);
		OK(CU(cuMemAlloc_v2)(&ptr, room));
		v->block = (void *)(uintptr_t)ptr;
	} else if (v->place == MANAGED) {
		v->gpu = m->rank->rank % N_GPUS;
		gpu_use(v->gpu);
		OK(CU(cuMemAllocManaged)(&ptr, room, 1));
		v->block = (void *)(uintptr_t)ptr;
	} else if (v->place == PINNED) {
		OK(CU(cuMemHostAlloc)(&v->block, room, 1));
	} else if (v->place == REGISTERED) {
		OK(wreath_mem_alloc(room, &v->block));
	} else {
		v->block = malloc(room);
	}
	v->at = (uint32_t *)(void *)((char *)v->block + shift);
	v->seen = v->at;
	if (v->gpu >= 0)
		v->seen = CU(fakeCudaAlias)((uintptr_t)v->at, bytes + 4);
}

static void unmake(struct vector *v)
{
	if (v->place <= MANAGED)
		OK(CU(cuMemFree_v2)((uintptr_t)v->block));
	else if (v->place == PINNED)
		OK(CU(cuMemFreeHost)(v->block));
	else if (v->place == REGISTERED)
		OK(wreath_mem_free(v->block));
	else
		free(v->block);
}

static size_t draw_count(uint64_t *state)
{
	/* In words, around where one way of doing it gives way to another. */
	static const size_t edges[] = {1, 14, 112, 512, 4096, 8192, 16384,
				       65536, 150000};
	size_t edge = edges[ranks_random(state) % 9];

	return edge - 1 + ranks_random(state) % 3;
}

/* The word of a vector of @rank. */
static uint32_t word_of(uint64_t salt, int rank, size_t i)
{
	return (uint32_t)(salt + 77 * (uint64_t)(rank + 1) + i * 2654435761u);
}

enum kind { REDUCE, GATHER, SPREAD, RING, N_KINDS };

static uint32_t expected(const struct mover *m, enum kind kind, uint64_t salt,
			 size_t count, size_t i)
{
	int n = m->rank->n_ranks;
	uint32_t sum = 0;
	int r;

	switch (kind) {
	case REDUCE:
		for (r = 0; r < n; r++)
			sum += word_of(salt, r, i);
		return sum;
	case GATHER:
		return word_of(salt, (int)(i / count), i % count);
	case SPREAD:
		return word_of(salt, n - 1, i);
	default:
		return word_of(salt, (m->rank->rank + n - 1) % n, i);
	}
}

static int call(struct mover *m, enum kind kind, const struct vector *in,
		const struct vector *out, size_t count,
		struct wreath_stream *stream)
{
	struct wreath_comm *comm = m->rank->comm;
	int n = m->rank->n_ranks;
	int err;

	switch (kind) {
	case REDUCE:
		return wreath_all_reduce(in->at, out->at, count, WREATH_UINT32,
					 WREATH_SUM, comm, stream);
	case GATHER:
		return wreath_all_gather(in->at, out->at, count, WREATH_UINT32,
					 comm, stream);
	case SPREAD:
		return wreath_broadcast(in->at, out->at, count, WREATH_UINT32,
					n - 1, comm, stream);
	default:
		wreath_group_start();
		err = wreath_send(in->at, count, WREATH_UINT32,
				  (m->rank->rank + 1) % n, comm, stream);
		if (!err)
			err = wreath_recv(out->at, count, WREATH_UINT32,
					  (m->rank->rank + n - 1) % n, comm,
					  stream);
		return wreath_group_end();
	}
}

/* Vectors of one call are on one GPU, and its stream's. */
static struct wreath_stream *choose(struct mover *m, struct vector *in,
				    struct vector *out)
{
	int gpu;

	in->place = (enum place)(ranks_random(&m->own) % N_PLACES);
	out->place = (enum place)(ranks_random(&m->own) % N_PLACES);
	gpu = in->place < MANAGED    ? (int)in->place
	      : in->place == MANAGED ? m->rank->rank % N_GPUS : -1;
	if (gpu >= 0 && out->place < MANAGED)
		out->place = (enum place)gpu;
	if (gpu >= 0 && out->place == MANAGED)
		out->place = in->place;
	if (gpu < 0)
		gpu = out->place < MANAGED ? (int)out->place
					   : m->rank->rank % N_GPUS;
	return ranks_random(&m->own) % 2 ? m->streams[gpu] : NULL;
}

static int operate(struct mover *m)
{
	enum kind kind = (enum kind)(ranks_random(&m->all) % N_KINDS);
	size_t count = draw_count(&m->all);
	uint64_t salt = ranks_random(&m->all);
	size_t n_out = kind == GATHER ? count * (size_t)m->rank->n_ranks
				      : count;
	size_t shift = ranks_random(&m->own) % 3 * 4;
	struct vector in, out;
	struct wreath_stream *stream = choose(m, &in, &out);
	size_t i;
	int err;

	make(m, &in, count * 4, shift);
	make(m, &out, n_out * 4, shift);
	for (i = 0; i < count; i++)
		in.seen[i] = word_of(salt, m->rank->rank, i);
	memset(out.seen, 0x55, n_out * 4 + 4);
	err = call(m, kind, &in, &out, count, stream);
	if (!err && stream)
		err = wreath_stream_wait(stream);
	for (i = 0; i < n_out && !err; i++)
		if (out.seen[i] != expected(m, kind, salt, count, i))
			err = rank_broken(m->rank, "kind %d of %zu from %d to "
					  "%d: word %zu", (int)kind, count,
					  (int)in.place, (int)out.place, i);
	if (!err && out.seen[n_out] != 0x55555555)
		err = rank_broken(m->rank, "a word behind was written");
	unmake(&in);
	unmake(&out);
	return err;
}

static int body(struct rank *rank)
{
	const uint64_t *seed = rank->arg;
	struct mover m = {.rank = rank, .all = *seed,
			  .own = *seed ^ (uint64_t)(rank->rank + 1) << 40};
	int err = 0;
	int i;

	for (i = 0; i < N_GPUS && !err; i++) {
		gpu_use(i);
		if (i)
			OK(CU(cuStreamCreate)(&m.cuda[i], (unsigned int)i & 1));
		err = wreath_stream_from_cuda(m.cuda[i], &m.streams[i]);
	}
	for (i = 0; i < N_OPS && !err; i++)
		err = operate(&m);
	for (i = 0; i < N_GPUS; i++) {
		wreath_stream_destroy(m.streams[i]);
		gpu_use(i);
		if (m.cuda[i])
			OK(CU(cuStreamDestroy_v2)(m.cuda[i]));
	}
	return err;
}

/* As processes: freeing waits for all that a process has on the GPU, and other
 * ranks of it would have something that waits for this one. */
static void run(int n)
{
	uint64_t seed = ranks_seed();
	struct ranks ranks = {.n = n, .body = body, .arg = &seed,
			      .seconds = RANKS_SLOW ? 200 : 60};

	ranks_run(&ranks);
}

/*
 * One rank has its input on the host and its output on a GPU, one has both on a
 * GPU, one both on the host: what the second has the third cannot read, and the
 * first, which can read all, has to conclude so as well.
 */
static int gather_mixed(struct rank *rank)
{
	static const enum place places[3][2] = {
		{REGISTERED, ON_GPU},
		{ON_GPU, ON_GPU},
		{REGISTERED, REGISTERED},
	};
	struct mover m = {.rank = rank};
	size_t count = 300000;
	size_t n_out = count * (size_t)rank->n_ranks;
	struct vector in = {.place = places[rank->rank % 3][0]};
	struct vector out = {.place = places[rank->rank % 3][1]};
	size_t i;
	int err = 0;
	int k;

	make(&m, &in, count * 4, 0);
	make(&m, &out, n_out * 4, 0);
	for (k = 0; k < 3 && !err; k++) {
		for (i = 0; i < count; i++)
			in.seen[i] = word_of((uint64_t)k, rank->rank, i);
		err = call(&m, GATHER, &in, &out, count, NULL);
		for (i = 0; i < n_out && !err; i++)
			if (out.seen[i] != expected(&m, GATHER, (uint64_t)k,
						    count, i))
				err = rank_broken(rank, "word %zu", i);
		if (!err)
			err = call(&m, RING, &in, &out, 14, NULL);
	}
	unmake(&in);
	unmake(&out);
	return err;
}

static void what_some_cannot_reach_nobody_reads(void **state)
{
	int n;

	(void)state;
	for (n = 3; n <= 5; n++) {
		struct ranks ranks = {.n = n, .body = gather_mixed};

		ranks_run(&ranks);
	}
}

static void a_communicator_follows_its_buffers(void **state)
{
	int n;

	(void)state;
	for (n = 2; n <= 5; n++)
		run(n);
}

static void so_it_does_by_keys(void **state)
{
	(void)state;
	ranks_set("WREATH_ARRIVAL", "completion");
	run(2);
	run(3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_communicator_follows_its_buffers,
					  ranks_clean),
		cmocka_unit_test_teardown(so_it_does_by_keys, ranks_clean),
		cmocka_unit_test_teardown(what_some_cannot_reach_nobody_reads,
					  ranks_clean),
	};

	setenv("RANKS_GPU", "1", 1);
	setenv("FAKE_CUDA", "devices=3,seed=7,late=50us", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
