/* SPDX-License-Identifier: MIT */
/*
 * Goal: memory of a GPU is reached from other processes and other GPUs, within
 * what was exported and nothing else, and imports are kept within a bound.
 * Method: two processes on the simulated driver, one that exports and one that
 * imports; descriptions that lie.
 */
#define _GNU_SOURCE
#include "test/unit/mem_gpu.h"

#define N_MAX (MEM_IMPORTS_MAX + 8)
#define BYTES ((size_t)5000)

/* What both processes see. */
static struct shared {
	struct mem_export exports[N_MAX];
	char *at[N_MAX];
} *shared;

static int to_peer[2], from_peer[2];

static void tell(int fd)
{
	CHECK(write(fd, "x", 1) == 1);
}

/* False when the other process has ended. */
static bool hear(int fd)
{
	char byte;

	return read(fd, &byte, 1) == 1;
}

static struct mem_where find(const void *ptr)
{
	struct mem_where where;

	OK(mem_where(ptr, &where));
	return where;
}

static void export_one(int i)
{
	struct mem_where where;

	shared->at[i] = new_memory(BYTES, i % 2);
	memset(alias(shared->at[i], BYTES), 10 + i, BYTES);
	where = find(shared->at[i] + 7);
	OK(mem_export(&where, &shared->exports[i]));
	/* Asked again, it is known. */
	CHECK(mem_export(&where, &shared->exports[i]) == 0);
}

/* The peer: exports all, then each time it hears from us, its first anew. */
static void exporter(void)
{
	int i;

	for (i = 0; i < N_MAX; i++)
		export_one(i);
	CHECK(CU(fakeCudaCalls)("cuIpcGetMemHandle") == N_MAX);
	tell(from_peer[1]);
	while (hear(to_peer[0])) {
		OK(mem_free(shared->at[0]));
		export_one(0);
		tell(from_peer[1]);
	}
	_exit(0);
}

static void peer_start(void)
{
	pid_t pid;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED && !pipe(to_peer) && !pipe(from_peer));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(to_peer[1]);
		close(from_peer[0]);
		exporter();
	}
	close(to_peer[0]);
	close(from_peer[1]);
	CHECK(hear(from_peer[0]));
}

static void peer_end(void)
{
	int status;

	close(to_peer[1]);
	CHECK(wait(&status) > 0 && !status);
}

/* With a peer, which must be there before this process starts CUDA. */
static void (*pair_body)(void);

static void pair(void)
{
	struct fake_leaks leaks;

	peer_start();
	pair_body();
	CU(fakeCudaLeaks)(&leaks);
	CHECK(!leaks.imports);
	peer_end();
	fflush(NULL);
	_exit(0);
}

static void pair_case(void (*body)(void))
{
	pair_body = body;
	assert_int_equal(kit_status("", pair), 0);
}

static char *import(struct mem_gpu *gpu, int i, size_t skip, size_t bytes)
{
	const struct mem_export *from = &shared->exports[i];
	void *at;

	if (mem_import(gpu, from, from->base + skip, bytes, &at))
		return NULL;
	return at;
}

static void copy(struct mem_gpu *gpu, void *dst, const void *src, size_t bytes)
{
	uint64_t number;

	OK(mem_gpu_copy(gpu, dst, src, bytes, &number));
	drain(gpu);
}

static void two_processes(void)
{
	struct mem_gpu *gpu;
	char *ours, *theirs;
	char *seen;
	int i;

	gpu = open_gpu(0, 4096);
	ours = new_memory(BYTES, 0);
	seen = alias(ours, BYTES);
	for (i = 0; i < 4; i++) {
		uint64_t number;
		const void *src[2];
		void *dst[1];
		struct mem_job job = {
			.fold = {.src = src, .dst = dst, .n_src = 2,
				 .n_dst = 1, .count = 1000},
			.type = WREATH_UINT8, .gpu_src = 3, .gpu_dst = 1,
		};

		theirs = import(gpu, i, 100, 1000);
		CHECK(theirs);
		copy(gpu, ours, theirs, 1000);
		CHECK(seen[0] == 10 + i && seen[999] == 10 + i);
		/* Into the peer's memory, and back. */
		src[0] = theirs;
		src[1] = ours;
		dst[0] = theirs;
		OK(mem_gpu_fold(gpu, &job, &number));
		drain(gpu);
		copy(gpu, ours, theirs - 1, 1002);
		CHECK(seen[0] == 10 + i && seen[1001] == 10 + i);
		CHECK(seen[1] == 2 * (10 + i) && seen[1000] == 2 * (10 + i));
	}
	CHECK(CU(fakeCudaCalls)("cuIpcOpenMemHandle_v2") == 4);
	CHECK(import(gpu, 2, 0, BYTES));
	CHECK(CU(fakeCudaCalls)("cuIpcOpenMemHandle_v2") == 4);
	mem_gpu_close(gpu);
	OK(mem_free(ours));
}

static void memory_of_another_process_is_reached(void **unused)
{
	(void)unused;
	set_image("fake");
	setenv("WREATH_GPU_REDUCE", "gpu", 1);
	pair_case(two_processes);
	setenv("WREATH_GPU_REDUCE", "host", 1);
	pair_case(two_processes);
	setenv("WREATH_GPU_REDUCE", "auto", 1);
}

static void refuse(struct mem_gpu *gpu, const struct mem_export *from,
		   uint64_t at, size_t bytes)
{
	void *out;

	FAILS(WREATH_EINVAL, mem_import(gpu, from, at, bytes, &out));
	CHECK(tells("0x"));
}

static void lies(void)
{
	struct mem_gpu *gpu;
	struct mem_export from;
	uint64_t base, state = 5;
	void *out;
	size_t i;
	int k, err;

	gpu = open_gpu(0, 4096);
	from = shared->exports[0];
	base = from.base;
	refuse(gpu, &from, base - 1, 10);
	refuse(gpu, &from, base + from.bytes, 1);
	refuse(gpu, &from, base + 1, from.bytes);
	refuse(gpu, &from, base, SIZE_MAX);
	refuse(gpu, &from, 0, 1);
	refuse(gpu, &from, UINT64_MAX, 1);
	OK(mem_import(gpu, &from, base + from.bytes, 0, &out));
	/* It is not as long as it says. */
	from.bytes = (uint64_t)1 << 40;
	refuse(gpu, &from, base + ((uint64_t)1 << 30), 10);
	from.bytes = UINT64_MAX;
	refuse(gpu, &from, base, 10);
	/* Handles of anything. */
	for (k = 0; k < 200; k++) {
		from = shared->exports[1];
		from.id += (uint64_t)k;
		for (i = 0; i < sizeof(from.handle); i++)
			if (k % 2 || i == (size_t)k / 2 % sizeof(from.handle))
				from.handle[i] = (unsigned char)
					next_random(&state);
		base_error_again(0, "");
		/* Not every byte of a handle means something. */
		err = mem_import(gpu, &from, from.base, 1, &out);
		CHECK(err == WREATH_EUNSUP || (!err && k % 2 == 0));
		CHECK(!err == !strstr(base_error_text(),
				      "cuIpcOpenMemHandle"));
		drain(gpu);
	}
	CHECK(import(gpu, 2, 0, 1));
	mem_gpu_close(gpu);
}

static void what_lies_outside_is_refused(void **unused)
{
	(void)unused;
	pair_case(lies);
}

static uint64_t n_open(void)
{
	return CU(fakeCudaCalls)("cuIpcOpenMemHandle_v2") -
	       CU(fakeCudaCalls)("cuIpcCloseMemHandle");
}

/* What the peer exported first, by names that it never had. */
static int import_as(struct mem_gpu *gpu, uint64_t name)
{
	struct mem_export from = shared->exports[0];
	void *out;

	from.id = name << 32;
	from.process[0] = name;
	return mem_import(gpu, &from, from.base, 1, &out);
}

static void room(void)
{
	struct mem_stream *stream;
	struct mem_gpu *gpu;
	uint64_t name = 1;
	uint32_t number;
	int i;

	gpu = open_gpu(1, 4096);
	kit_use(1);
	OK(mem_stream_open(NULL, &stream));
	/* All may still be used. */
	for (i = 0; i < N_MAX; i++)
		CHECK(import(gpu, i, 0, 1));
	CHECK(n_open() == N_MAX);
	drain(gpu);
	/* Closing would wait for a stream that waits for us. */
	OK(mem_stream_put(stream, &number));
	OK(import_as(gpu, name++));
	CHECK(n_open() == N_MAX + 1);
	mem_stream_release(stream, number);
	/* Now one goes where one comes. */
	for (i = 0; i < 5; i++)
		OK(import_as(gpu, name++));
	CHECK(n_open() == N_MAX + 1);
	base_error_again(0, "");
	while (!import_as(gpu, name))
		name++;
	CHECK(n_open() == MEM_IMPORTS_MOST);
	CHECK(strstr(base_error_text(), "imported"));
	FAILS(WREATH_EUNSUP, import_as(gpu, name));
	/* What is known needs no room. */
	OK(import_as(gpu, name - 1));
	drain(gpu);
	OK(import_as(gpu, name));
	while (!mem_stream_reached(stream, number))
		sched_yield();
	mem_stream_close(stream);
	mem_gpu_close(gpu);
	CHECK(!n_open());
	kit_leave(1);
}

static void imports_are_bounded(void **unused)
{
	(void)unused;
	pair_case(room);
}

static void gone(void)
{
	struct mem_gpu *gpu;
	struct mem_export before;
	int i, n_closed = 0;

	gpu = open_gpu(1, 4096);
	for (i = 0; i < 10; i++) {
		char *ours = new_memory(BYTES, 1);
		char *theirs = import(gpu, 0, 0, BYTES);

		CHECK(theirs);
		copy(gpu, ours, theirs, BYTES);
		CHECK(alias(ours, BYTES)[BYTES - 1] == 10);
		OK(mem_free(ours));
		before = shared->exports[0];
		tell(to_peer[1]);
		CHECK(hear(from_peer[0]));
		CHECK(before.id != shared->exports[0].id);
		n_closed += before.base == shared->exports[0].base;
	}
	/* Of those that are known to be gone, none is kept. */
	CHECK(import(gpu, 0, 0, BYTES));
	CHECK(CU(fakeCudaCalls)("cuIpcCloseMemHandle") == (uint64_t)n_closed);
	mem_gpu_close(gpu);
}

static void memory_that_is_gone_is_closed(void **unused)
{
	(void)unused;
	pair_case(gone);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_of_another_process_is_reached),
		cmocka_unit_test(what_lies_outside_is_refused),
		cmocka_unit_test(imports_are_bounded),
		cmocka_unit_test(memory_that_is_gone_is_closed),
	};

	alarm(60);
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
