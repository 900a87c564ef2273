/* SPDX-License-Identifier: MIT */
#include <sched.h>

#include "mem/jobs.h"

/* For the first word of a stream, and for jobs that are under way when a GPU is
 * closed. */
#define TIMEOUT_MS 5000

static int open_stream(struct mem_gpu *gpu)
{
	struct cuda_visit visit;
	int result;
	int err = cuda_words_get(gpu->device, &gpu->words);

	if (err)
		return err;
	gpu->has_words = true;
	/* A job is done when the word is the mark; 2^32 more, since no mark
	 * may be 0. */
	gpu->mark = (1ull << 32) + atomic_load_explicit(gpu->words.from_gpu,
							memory_order_relaxed);
	err = cuda_visit(gpu->device, &visit);
	if (err)
		return err;
	/* What others wait for goes before what the user computes. */
	result = cuda.stream_new(&gpu->stream, CUDA_STREAM_NON_BLOCKING,
				 gpu->device->priority);
	cuda_visit_end(&visit);
	if (result)
		return cuda_error(result, "cuStreamCreateWithPriority",
				  "GPU %d (%s)", gpu->device->number,
				  gpu->info.name);
	return 0;
}

/* Everything is waited for by words that streams write: see one come. */
static int try_words(struct mem_gpu *gpu)
{
	uint64_t end_ns = base_now_ns() + TIMEOUT_MS * 1000000ull;
	uint32_t mark = (uint32_t)++gpu->mark;
	struct cuda_visit visit;
	int result;
	int err = cuda_visit(gpu->device, &visit);

	if (err)
		return err;
	result = cuda.stream_write(gpu->stream, (uintptr_t)gpu->words.from_gpu,
				   mark, 0);
	cuda_visit_end(&visit);
	if (result)
		return cuda_error(result, "cuStreamWriteValue32",
				  "a stream of GPU %d (%s), which wreath needs",
				  gpu->device->number, gpu->info.name);
	while (atomic_load_explicit(gpu->words.from_gpu,
				    memory_order_acquire) != mark) {
		if (base_now_ns() > end_ns) {
			/* They may still be written: nobody else gets them. */
			gpu->has_words = false;
			return base_error(WREATH_EDEVICE,
					  "GPU %d (%s) does nothing on a new "
					  "stream for %d ms; is it busy with "
					  "kernels that do not end?",
					  gpu->device->number, gpu->info.name,
					  TIMEOUT_MS);
		}
		sched_yield();
	}
	return 0;
}

/* @is_idle: the stream uses nothing any more. */
static void release(struct mem_gpu *gpu, bool is_idle)
{
	struct cuda_visit visit;

	if (gpu->stream && !cuda_visit(gpu->device, &visit)) {
		cuda.stream_free(gpu->stream);
		cuda_visit_end(&visit);
	}
	if (is_idle) {
		mem_pinned_free(gpu->stages);
		if (gpu->has_words)
			cuda_words_put(&gpu->words);
	} else {
		base_log(BASE_LOG_WARN,
			 "GPU %d (%s) is closed with jobs under way; %zu bytes "
			 "of pinned memory that they use are not freed",
			 gpu->device->number, gpu->info.name,
			 STAGES * gpu->stage_bytes);
	}
	base_free(gpu);
}

int mem_gpu_open(int number, size_t fold_bytes, struct mem_gpu **out)
{
	struct cuda_gpu *device;
	struct mem_gpu *gpu;
	int err = cuda_gpu_get(number, &device);

	if (err)
		return err;
	gpu = base_alloc(1, sizeof(*gpu));
	if (!gpu)
		return WREATH_ENOMEM;
	gpu->device = device;
	err = cuda_kernels_load(device, &gpu->info);
	if (err)
		goto err_release;
	err = open_stream(gpu);
	if (!err)
		err = try_words(gpu);
	if (!err)
		err = stages_init(gpu, fold_bytes);
	if (err)
		goto err_release;
	*out = gpu;
	return 0;
err_release:
	release(gpu, true);
	return err;
}

void mem_gpu_close(struct mem_gpu *gpu)
{
	int err;

	if (!gpu)
		return;
	/* What was not pushed is not begun any more. */
	gpu->last = gpu->pushed;
	err = gpu->last ? mem_gpu_drain(gpu, TIMEOUT_MS) : 0;
	gpu_imports_close(gpu);
	/* A broken context runs nothing any more. */
	release(gpu, !err || gpu->error);
}

int mem_gpu_number(const struct mem_gpu *gpu)
{
	return gpu->device->number;
}

const struct mem_gpu_info *mem_gpu_about(const struct mem_gpu *gpu)
{
	return &gpu->info;
}
