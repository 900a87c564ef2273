/* SPDX-License-Identifier: MIT */
/* The buffers of a rank, and the stream of its calls, on the host or a GPU. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/perf_measure.h"
#include "mem/mem.h"

const char *const perf_memory_names[] = {"host", "gpu", "managed", "mixed",
					 NULL};

bool perf_memory_read(const struct bench_args *args, const char *value,
		      struct perf_options *options)
{
	size_t length = strcspn(value, ":");
	char name[16];
	int word;

	/* nccl-tests' -M 0: no report of memory. */
	if (!strcmp(value, "0"))
		return true;
	snprintf(name, sizeof(name), "%.*s", (int)length, value);
	word = bench_word(args, "--memory", name, perf_memory_names);
	if (word < 0)
		return false;
	options->memory = word;
	options->gpu = -1;
	if (!value[length])
		return true;
	if (word != PERF_HOST &&
	    base_parse_int(value + length + 1, 0, 63, &options->gpu))
		return true;
	bench_refuse(args, "--memory '%.64s': a GPU's number, 0 to 63, may "
			   "follow gpu, managed and mixed: gpu:1", value);
	return false;
}

/*
 * Where ranks are forked that is asked in another process; a process that is a
 * rank itself starts CUDA here.
 */
static int count_gpus(const struct perf_options *options, int *n)
{
	int error;

	if (!options->is_launched)
		return bench_gpu_probe(n);
	error = mem_cuda_load();
	if (!error)
		*n = mem_gpu_count();
	return error;
}

bool perf_memory_exists(const struct perf_options *options)
{
	int n;

	if (options->memory == PERF_HOST)
		return true;
	if (count_gpus(options, &n)) {
		fprintf(stderr, "wreath perf: --memory %s: %s\n",
			perf_memory_names[options->memory],
			wreath_error_text());
		return false;
	}
	if (options->gpu < n)
		return true;
	fprintf(stderr, "wreath perf: --memory %s:%lld: CUDA sees GPUs 0 to "
			"%d\n", perf_memory_names[options->memory],
		(long long)options->gpu, n - 1);
	return false;
}

/* ---- allocation ---- */

/* Which of the ranks on this host; negative when the team has come apart. */
static int local_rank(struct perf_team *team)
{
	char mine[64] = "";
	char *all;
	int n = 0;
	int r;

	/* Forked ranks are all on one. */
	if (!team->comm)
		return team->rank;
	gethostname(mine, sizeof(mine) - 1);
	all = calloc((size_t)team->n_ranks, sizeof(mine));
	if (!all || !perf_team_gather(team, mine, sizeof(mine), all)) {
		free(all);
		return -1;
	}
	for (r = 0; r < team->rank; r++)
		n += !strncmp(all + (size_t)r * sizeof(mine), mine,
			      sizeof(mine));
	free(all);
	return n;
}

static int buffer_new(struct perf_memory *memory, void **out)
{
	const struct perf_options *options = memory->options;

	if (options->buffers == PERF_ALLOC && !memory->is_gpu)
		return wreath_mem_alloc(memory->bytes, out);
	if (options->buffers == PERF_ALLOC && options->memory != PERF_MANAGED)
		return wreath_mem_alloc_gpu(memory->bytes, memory->gpu.number,
					    out);
	if (memory->is_gpu)
		return bench_gpu_new(memory->bytes,
				     options->memory == PERF_MANAGED, out);
	if (posix_memalign(out, 4096, memory->bytes)) {
		*out = NULL;
		return base_error(WREATH_ENOMEM, "no memory for a buffer of "
						 "%zu bytes; lower -e",
				  memory->bytes);
	}
	return 0;
}

static void buffer_free(struct perf_memory *memory, void *buffer)
{
	const struct perf_options *options = memory->options;

	if (options->buffers == PERF_ALLOC &&
	    !(memory->is_gpu && options->memory == PERF_MANAGED)) {
		wreath_mem_free(buffer);
		return;
	}
	if (buffer && options->buffers == PERF_REGISTER)
		wreath_mem_deregister(buffer);
	if (memory->is_gpu)
		bench_gpu_free(buffer);
	else
		free(buffer);
}

static int open_gpu(struct perf_memory *memory, int local)
{
	int n = mem_gpu_count();
	int number = (int)memory->options->gpu;
	int error;

	if (number < 0)
		number = n ? local % n : 0;
	error = bench_gpu_open(number, &memory->gpu);
	if (error)
		return error;
	memory->copy = malloc(memory->bytes);
	if (!memory->copy)
		return base_error(WREATH_ENOMEM, "no memory for a copy of "
						 "%zu bytes of the GPU's; "
						 "lower -e", memory->bytes);
	return 0;
}

/*
 * Buffers with room to start anywhere in their first page.  They are made once
 * a communicator, of the size of the largest vector.
 */
int perf_memory_open(struct perf_memory *memory,
		     const struct perf_options *options,
		     struct perf_team *team)
{
	int local = options->memory == PERF_HOST ? 0 : local_rank(team);
	int error = 0;
	int i;

	*memory = (struct perf_memory){.options = options};
	if (local < 0)
		return base_error(WREATH_ENOMEM, "cannot tell which ranks are "
						 "on this host");
	memory->bytes = options->buffer_bytes + options->unalign + 64;
	if (options->memory != PERF_HOST &&
	    (options->memory != PERF_MIXED || team->rank % 2 == 0)) {
		error = mem_cuda_load();
		memory->is_gpu = !error;
		if (!error)
			error = open_gpu(memory, local);
	}
	for (i = options->halves == PERF_IN; i < 2 && !error; i++) {
		error = buffer_new(memory, &memory->buffers[i]);
		if (!error && options->buffers == PERF_REGISTER)
			error = wreath_mem_register(memory->buffers[i],
						    memory->bytes);
	}
	return error;
}

void perf_memory_close(struct perf_memory *memory)
{
	int i;

	if (!memory->options)
		return;
	for (i = 0; i < 2; i++)
		buffer_free(memory, memory->buffers[i]);
	free(memory->copy);
	bench_gpu_close(&memory->gpu);
	memset(memory, 0, sizeof(*memory));
}

/* ---- use ---- */

int perf_memory_stream(const struct perf_memory *memory,
		       struct wreath_stream **out)
{
	*out = NULL;
	if (memory->is_gpu && !memory->options->blocking)
		return wreath_stream_from_cuda(memory->gpu.stream, out);
	return memory->options->stream ? wreath_stream_create(out) : 0;
}

void perf_memory_describe(const struct perf_memory *memory,
			  struct perf_place *place)
{
	struct mem_gpu_info info;

	place->gpu = -1;
	if (!memory->is_gpu)
		return;
	place->gpu = memory->gpu.number;
	if (mem_gpu_info(place->gpu, &info))
		return;
	snprintf(place->gpu_name, sizeof(place->gpu_name), "%.15s %.47s",
		 info.pci, info.name);
}

void *perf_memory_view(const struct perf_memory *memory, const void *at)
{
	uintptr_t address = (uintptr_t)at;
	int i;

	if (!memory->is_gpu)
		return (void *)address;
	for (i = 0; i < 2; i++) {
		uintptr_t base = (uintptr_t)memory->buffers[i];

		if (address >= base && address - base < memory->bytes)
			return memory->copy + (address - base);
	}
	wreath_assert(!"a pointer into no buffer");
	return NULL;
}

int perf_memory_put(struct perf_memory *memory, void *at, size_t bytes)
{
	if (!memory->is_gpu || !bytes)
		return 0;
	return bench_gpu_copy(&memory->gpu, at, perf_memory_view(memory, at),
			      bytes);
}

int perf_memory_get(struct perf_memory *memory, const void *at, size_t bytes)
{
	if (!memory->is_gpu || !bytes)
		return 0;
	return bench_gpu_copy(&memory->gpu, perf_memory_view(memory, at), at,
			      bytes);
}

int perf_call_wait(struct perf_cell *cell)
{
	int error = cell->stream ? wreath_stream_wait(cell->stream) : 0;

	if (error || !cell->stream || !cell->memory->is_gpu)
		return error;
	return bench_gpu_wait(&cell->memory->gpu);
}
