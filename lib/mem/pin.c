/* SPDX-License-Identifier: MIT */
/* Host memory that GPUs reach. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "mem/cuda.h"
#include "mem/mem.h"

/* Taking memory back waits for an idle GPU, which others may be waiting for:
 * they get so long to come to an end. */
#define UNPIN_WAIT_MS 2000
/* Ranges that this process has pinned; one more is staged. */
#define PINS_MAX 1024
#define WORD_PAGES_MAX 64
#define WORD_PAGE_BYTES ((size_t)4096)
#define WORD_SLOTS (WORD_PAGE_BYTES / (2 * BASE_LINE))

struct pin {
	void *ptr;
	size_t bytes;
	bool is_ours; /* else CUDA knew it before */
	unsigned int n_users;
};

static struct {
	pthread_mutex_t lock;
	struct pin pins[PINS_MAX];
	size_t n_pins;
	char *pages[WORD_PAGES_MAX];
	/* A bit for each slot that is taken. */
	uint32_t taken[WORD_PAGES_MAX];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

_Static_assert(WORD_SLOTS == 32, "a word of bits tells which are taken");

/* Caller holds @table.lock. */
static struct pin *find(const void *ptr)
{
	size_t i;

	for (i = 0; i < table.n_pins; i++)
		if (table.pins[i].ptr == ptr)
			return &table.pins[i];
	return NULL;
}

static bool is_known(const char *ptr, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t at;

	for (at = 0; at < bytes; at += page) {
		struct mem_where where;

		if (cuda_where(ptr + at, &where) || where.kind != MEM_PINNED)
			return false;
	}
	return true;
}

/* Caller holds @table.lock. */
static int pin(const struct cuda_gpu *gpu, void *ptr, size_t bytes)
{
	struct pin *pin = &table.pins[table.n_pins];
	struct cuda_visit visit;
	int result;

	if (table.n_pins == PINS_MAX || cuda_visit(gpu, &visit))
		return WREATH_EUNSUP;
	result = cuda.mem_host_register(ptr, bytes,
					CUDA_HOST_PORTABLE | CUDA_HOST_MAPPED);
	/* A part of it may be what is known. */
	if (result == CUDA_HOST_MEMORY_ALREADY_REGISTERED &&
	    !is_known(ptr, bytes))
		result = CUDA_NOT_SUPPORTED;
	cuda_visit_end(&visit);
	if (result && result != CUDA_HOST_MEMORY_ALREADY_REGISTERED) {
		char text[128];

		cuda_describe(result, text);
		base_log(BASE_LOG_INFO,
			 "%zu bytes of host memory at %p cannot be pinned: %s; "
			 "what lies there is staged", bytes, ptr, text);
		return WREATH_EUNSUP;
	}
	*pin = (struct pin){ptr, bytes, !result, 1};
	table.n_pins++;
	return 0;
}

int mem_pin(void *ptr, size_t bytes)
{
	struct cuda_gpu *gpu = cuda_gpu_any();
	struct pin *known;
	bool is_shut;
	int err = 0;

	/* Where kernels would have to use another address. */
	if (!gpu || !gpu->uses_host_pointers)
		return WREATH_EUNSUP;
	/* It may wait for the GPU, which may wait for the caller. */
	is_shut = cuda_gate_shut();
	pthread_mutex_lock(&table.lock);
	known = find(ptr);
	if (known && known->bytes < bytes)
		err = WREATH_EUNSUP;
	else if (known)
		known->n_users++;
	else
		err = is_shut ? pin(gpu, ptr, bytes) : WREATH_EAGAIN;
	pthread_mutex_unlock(&table.lock);
	if (is_shut)
		cuda_gate_open();
	return err;
}

/* Until no stream waits for us, if that comes soon. */
static bool await_gate(void)
{
	int ms;

	for (ms = 0; ms < UNPIN_WAIT_MS; ms++) {
		if (cuda_gate_shut())
			return true;
		base_sleep_ms(1);
	}
	return false;
}

void mem_unpin(void *ptr)
{
	struct cuda_gpu *gpu = cuda_gpu_any();
	struct cuda_visit visit;
	bool is_shut = await_gate();
	struct pin *pin;

	pthread_mutex_lock(&table.lock);
	pin = find(ptr);
	if (pin && !--pin->n_users) {
		if (pin->is_ours && !cuda_visit(gpu, &visit)) {
			cuda.mem_host_unregister(ptr);
			cuda_visit_end(&visit);
		}
		*pin = table.pins[--table.n_pins];
	}
	pthread_mutex_unlock(&table.lock);
	if (is_shut)
		cuda_gate_open();
}

static int pinned_new(const struct cuda_gpu *gpu, size_t bytes, void **out)
{
	struct cuda_visit visit;
	void *ptr;
	int result;
	int err = cuda_visit(gpu, &visit);

	if (err)
		return err;
	result = cuda.mem_host_new(&ptr, bytes,
				   CUDA_HOST_PORTABLE | CUDA_HOST_MAPPED);
	cuda_visit_end(&visit);
	if (result)
		return cuda_error(result, "cuMemHostAlloc",
				  "%zu bytes of pinned host memory for GPU %d",
				  bytes, gpu->number);
	memset(ptr, 0, bytes);
	*out = ptr;
	return 0;
}

int mem_pinned_new(size_t bytes, void **out)
{
	struct cuda_gpu *gpu = cuda_gpu_any();
	int err = 0;

	if (!gpu)
		err = cuda_gpu_get(0, &gpu);
	if (!err)
		err = pinned_new(gpu, bytes, out);
	return err;
}

void mem_pinned_free(void *ptr)
{
	struct cuda_gpu *gpu = cuda_gpu_any();
	struct cuda_visit visit;

	if (!ptr || !gpu || cuda_visit(gpu, &visit))
		return;
	cuda.mem_host_free(ptr);
	cuda_visit_end(&visit);
}

int cuda_words_get(const struct cuda_gpu *gpu, struct cuda_words *out)
{
	void *page;
	char *at;
	int i = 0;
	int err = 0;

	pthread_mutex_lock(&table.lock);
	while (i < WORD_PAGES_MAX && table.pages[i] && !~table.taken[i])
		i++;
	if (i == WORD_PAGES_MAX)
		err = base_error(WREATH_ENOMEM,
				 "%d words for streams of GPUs are in use; "
				 "destroy streams or communicators first",
				 (int)(WORD_PAGES_MAX * WORD_SLOTS));
	else if (!table.pages[i]) {
		err = pinned_new(gpu, WORD_PAGE_BYTES, &page);
		if (!err)
			table.pages[i] = page;
	}
	if (!err) {
		out->i_page = i;
		out->i_slot = __builtin_ctz(~table.taken[i]);
		table.taken[i] |= 1u << out->i_slot;
		at = table.pages[i] + (size_t)out->i_slot * 2 * BASE_LINE;
		out->from_gpu = (_Atomic uint32_t *)(void *)at;
		out->to_gpu = (_Atomic uint32_t *)(void *)(at + BASE_LINE);
	}
	pthread_mutex_unlock(&table.lock);
	return err;
}

void cuda_words_put(struct cuda_words *words)
{
	pthread_mutex_lock(&table.lock);
	table.taken[words->i_page] &= ~(1u << words->i_slot);
	pthread_mutex_unlock(&table.lock);
}
