/* SPDX-License-Identifier: MIT */
/*
 * Goal: operations on memory of GPUs give what they give on the host, in the
 * order of CUDA's streams, without waiting for a GPU on the way; whatever GPUs
 * can and cannot do, and when the driver fails.
 * Method: calls by chance (calls.h) on simulated GPUs of every kind, and ranks
 * with either kind of memory in one operation; chains on streams on which all
 * other work is late; counts of the driver's calls; the nth of them failing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/loop/gpu_inner.h"
#include "test/loop/calls.h"

static const char *const synchronizing[] = {
	"cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize",
	"cuMemcpy", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2",
	"cuMemFree_v2", "cuMemFreeHost", "cuMemHostUnregister",
};

static uint64_t n_synchronizing(void)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < sizeof(synchronizing) / sizeof(synchronizing[0]); i++)
		n += CU(fakeCudaCalls)(synchronizing[i]);
	return n;
}

static int on_gpus_again(void **state)
{
	ranks_clean(state);
	unsetenv("RANKS_GPU");
	unsetenv("FAKE_CUDA");
	return 0;
}

/* ---- right, on every kind of GPU ---- */

struct kind {
	const char *gpu; /* FAKE_CUDA */
	const char *name, *value; /* a setting of wreath */
	const char *way; /* that must be used; - is before what must not */
};

#define OPENS "cuIpcOpenMemHandle_v2"
#define EXPORTS "cuMemGetHandleForAddressRange"

static const struct kind kinds[] = {
	{"devices=3,late=200us", NULL, NULL, OPENS},
	{"devices=3,late=200us", "WREATH_GPU_REDUCE", "host",
	 "-cuLaunchKernel"},
	{"devices=3,late=200us", "WREATH_GPU_REDUCE", "gpu", "cuLaunchKernel"},
	{"devices=3,late=200us", "WREATH_GPU_IPC", "off", "-" OPENS},
	{"devices=3,late=200us", "WREATH_GPU_DIRECT", "off", "-" EXPORTS},
	{"devices=2,late=1ms,noipc", NULL, NULL, "-" OPENS},
	{"devices=2,late=0,nopeer,hopper", NULL, NULL, "cuLaunchKernel"},
	{"devices=2,late=50us", "WREATH_ARRIVAL", "completion", EXPORTS},
	{"devices=2,late=0,hopper", "WREATH_ARRIVAL", "completion", EXPORTS},
	{"devices=2,late=50us,peermem,nodmabuf", "WREATH_ARRIVAL",
	 "completion", "-" EXPORTS},
	{"devices=2,late=50us,nodmabuf", "WREATH_ARRIVAL", "completion",
	 "-" EXPORTS},
	{"devices=2,late=50us", "WREATH_SLOT_BYTES", "4096", "cuLaunchKernel"},
	{"devices=1,late=50us,noipc", "WREATH_SOFT", "ib:1,roce:1",
	 "cuMemHostRegister_v2"},
};

struct kind_plan {
	struct calls_plan calls;
	const struct kind *kind;
};

/* All calls by chance, after two that are long enough for every way. */
static int run_kind(struct rank *rank)
{
	const struct kind_plan *plan = rank->arg;
	const char *way = plan->kind->way;
	enum call first[] = {ALL_REDUCE, ALL_GATHER};
	uint64_t own = (uint64_t)rank->rank;
	struct rank inner = *rank;
	size_t i;
	int err = 0;

	for (i = 0; i < 2 && !err; i++) {
		struct trial_call call = {.call = first[i], .count = 30000};

		call.model.type = WREATH_INT32;
		call.model.kind = MODEL_EXACT;
		call.model.n_ranks = rank->n_ranks;
		err = calls_run(rank, &own, &call);
	}
	inner.arg = &plan->calls;
	if (!err)
		err = calls_body(&inner);
	rank_result(rank)->values[0] =
		CU(fakeCudaCalls)(way + (*way == '-'));
	return err;
}

static void expect_way(const struct ranks *run, const struct kind *kind)
{
	bool is_not = *kind->way == '-';
	uint64_t n = 0;
	int i;

	for (i = 0; i < run->n; i++)
		n += run->shared->results[i].values[0];
	if (!n != is_not)
		fail_msg("%s was called %d times", kind->way, (int)n);
}

static void run_kinds(const char *how)
{
	struct kind_plan plan = {.calls = {.seed = ranks_seed(),
					   .bytes = 200000,
					   .n_calls = RANKS_TIMES(5, 20, 200),
					   .only = -1}};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct kind *kind = &kinds[i];
		struct ranks run = {.n = 2 + (int)((plan.calls.seed + i) % 4),
				    .body = run_kind, .arg = &plan};

		plan.kind = kind;
		/* Within a process nothing is opened. */
		run.mode = i && (plan.calls.seed >> i) % 2 ? RANKS_THREADS
							   : RANKS_PROCESSES;
		printf("%s, %s=%s, %d ranks, %s\n", kind->gpu,
		       kind->name ? kind->name : "",
		       kind->value ? kind->value : "", run.n,
		       run.mode == RANKS_THREADS ? "threads" : "processes");
		ranks_set("RANKS_GPU", how);
		ranks_set("FAKE_CUDA", kind->gpu);
		if (kind->name)
			ranks_set(kind->name, kind->value);
		ranks_start(&run);
		ranks_join(&run);
		ranks_expect_ok(&run);
		if (!strcmp(how, "1"))
			expect_way(&run, kind);
		ranks_end(&run);
		on_gpus_again(NULL);
	}
}

static void every_kind_of_gpu_is_right(void **state)
{
	(void)state;
	run_kinds("1");
}

static void ranks_on_gpus_and_on_hosts_meet(void **state)
{
	(void)state;
	run_kinds("mix");
}

/* ---- in order, and nobody waits ---- */

#define CHAIN 60
#define WORDS 3000

/*
 * Each operation takes what the one before it has made, after a change by work
 * on the CUDA stream in between.
 */
static int run_chain(struct rank *rank)
{
	struct CUstream_st *cuda;
	struct wreath_stream *stream;
	uint64_t words[WORDS];
	uint64_t n_before, factor = 1;
	size_t bytes = sizeof(words);
	int err, i;
	cu_ptr ptr;

	OK(CU(cuStreamCreate)(&cuda, *(const unsigned int *)rank->arg));
	OK(CU(cuMemAlloc_v2)(&ptr, bytes * 2));
	for (i = 0; i < WORDS; i++)
		words[i] = (uint64_t)i + 1;
	err = wreath_stream_from_cuda(cuda, &stream);
	/* What is made once is made by now. */
	if (!err)
		err = wreath_all_reduce((void *)(uintptr_t)ptr,
					(void *)(uintptr_t)(ptr + bytes), WORDS,
					WREATH_UINT64, WREATH_SUM, rank->comm,
					NULL);
	n_before = n_synchronizing();
	OK(CU(cuMemcpyHtoDAsync_v2)(ptr, words, bytes, cuda));
	for (i = 0; i < CHAIN && !err; i++) {
		err = wreath_all_reduce((void *)(uintptr_t)ptr,
					(void *)(uintptr_t)(ptr + bytes), WORDS,
					WREATH_UINT64, WREATH_SUM, rank->comm,
					stream);
		OK(CU(cuMemcpyDtoDAsync_v2)(ptr, ptr + bytes, bytes, cuda));
		/* What lies in the result meanwhile is no result. */
		OK(CU(cuMemsetD8Async)(ptr + bytes, 0xee, bytes, cuda));
		factor *= (uint64_t)rank->n_ranks;
	}
	if (!err && n_synchronizing() != n_before)
		err = rank_broken(rank, "%d calls waited for the GPU",
				  (int)(n_synchronizing() - n_before));
	/* Into memory of the host: returns when it is there. */
	OK(CU(cuMemcpyDtoHAsync_v2)(words, ptr, bytes, cuda));
	for (i = 0; i < WORDS && !err; i++)
		if (words[i] != ((uint64_t)i + 1) * factor)
			err = rank_broken(rank, "word %d is %llx", i,
					  (unsigned long long)words[i]);
	if (!err)
		err = wreath_stream_wait(stream);
	wreath_stream_destroy(stream);
	OK(CU(cuStreamDestroy_v2)(cuda));
	OK(CU(cuMemFree_v2)(ptr));
	return err;
}

static void operations_are_in_the_order_of_cuda(void **state)
{
	static const unsigned int flags[] = {0, CU_STREAM_NON_BLOCKING};
	int n, i;

	(void)state;
	for (n = 1; n <= 4; n++) {
		for (i = 0; i < 2; i++) {
			ranks_set("RANKS_GPU", "1");
			ranks_set("FAKE_CUDA", "devices=4,late=1ms");
			ranks_run(&(struct ranks){.n = n, .body = run_chain,
						  .arg = &flags[i]});
		}
	}
}

/* ---- the nth call of the driver fails ---- */

#define FAIL_WORDS 40000

struct failing {
	uint64_t n;
	const char *name; /* or any */
};

/* An error that says so, or the right result. */
static int fail_once(struct rank *rank)
{
	const struct failing *failing = rank->arg;
	size_t bytes = FAIL_WORDS * sizeof(uint32_t);
	uint32_t *words = malloc(bytes);
	struct rank_result *result = rank_result(rank);
	uint32_t want = 0;
	cu_ptr ptr;
	int err, i;

	for (i = 0; i < rank->n_ranks; i++)
		want += (uint32_t)i + 1;
	for (i = 0; i < FAIL_WORDS; i++)
		words[i] = (uint32_t)rank->rank + 1;
	OK(CU(cuMemAlloc_v2)(&ptr, bytes));
	OK(CU(cuMemcpyHtoD_v2)(ptr, words, bytes));
	if (!rank->rank)
		CU(fakeCudaFail)(failing->name, failing->n);
	err = wreath_all_reduce((void *)(uintptr_t)ptr, (void *)(uintptr_t)ptr,
				FAIL_WORDS, WREATH_UINT32, WREATH_SUM,
				rank->comm, NULL);
	if (err && !wreath_error_text()[0])
		return rank_broken(rank, "%d, and no text", err);
	result->values[1] = (uint64_t)CU(fakeCudaFail)(NULL, 0);
	if (!err) {
		OK(CU(cuMemcpyDtoH_v2)(words, ptr, bytes));
		for (i = 0; i < FAIL_WORDS && !err; i++)
			if (words[i] != want)
				err = rank_broken(rank, "word %d is %u", i,
						  words[i]);
	} else {
		err = 0;
	}
	/* Of a context that has failed it is given back all the same. */
	CU(cuMemFree_v2)(ptr);
	free(words);
	wreath_comm_destroy(rank->comm);
	rank->comm = NULL;
	return err;
}

static void fail_each(const char *name)
{
	struct failing failing = {.name = name, .n = 1};
	bool is_left = false;

	while (!is_left) {
		struct ranks run = {.n = 2, .body = fail_once,
				    .arg = &failing};

		ranks_set("RANKS_GPU", "1");
		ranks_set("FAKE_CUDA", "devices=2,late=0");
		ranks_set("WREATH_TIMEOUT", "10s");
		ranks_start(&run);
		ranks_join(&run);
		ranks_expect_ok(&run);
		is_left = run.shared->results[0].values[1];
		ranks_end(&run);
		failing.n += RANKS_TIMES(7, 3, 1);
	}
	printf("%s: %d calls\n", name, (int)failing.n);
}

static void a_failing_driver_is_told_or_does_not_matter(void **state)
{
	(void)state;
	fail_each("any");
	fail_each("kernel");
	fail_each("copy");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_kind_of_gpu_is_right,
					  on_gpus_again),
		cmocka_unit_test_teardown(ranks_on_gpus_and_on_hosts_meet,
					  on_gpus_again),
		cmocka_unit_test_teardown(operations_are_in_the_order_of_cuda,
					  on_gpus_again),
		cmocka_unit_test_teardown(
			a_failing_driver_is_told_or_does_not_matter,
			on_gpus_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
