/* SPDX-License-Identifier: MIT */
/*
 * Folds that no kernel does: operands on the GPU are copied to pinned memory,
 * folded there by the processor, and the result is copied back.
 */
#include <string.h>

#include "mem/jobs.h"

/* The bounds of a stage: below, copies are dear; above, the processor would be
 * away for long (0.1 ms at 20 GB/s), and pinned memory is taken from all. */
#define STAGE_BYTES_MIN ((size_t)64 << 10)
#define STAGE_BYTES_MAX ((size_t)2 << 20)

int stages_init(struct mem_gpu *gpu, size_t fold_bytes)
{
	/* Most folds have two operands on the GPU at most. */
	size_t bytes = fold_bytes < STAGE_BYTES_MAX / 2 ? 2 * fold_bytes
							: STAGE_BYTES_MAX;
	void *memory;
	int err, i;

	if (bytes < STAGE_BYTES_MIN)
		bytes = STAGE_BYTES_MIN;
	gpu->stage_bytes = base_round_up(bytes, 4096);
	err = mem_pinned_new(STAGES * gpu->stage_bytes, &memory);
	if (err)
		return err;
	gpu->stages = memory;
	for (i = 0; i < STAGES; i++)
		gpu->pieces[i].memory = gpu->stages +
					(size_t)i * gpu->stage_bytes;
	return 0;
}

static struct piece *piece_at(struct mem_gpu *gpu, uint64_t i)
{
	return &gpu->pieces[(gpu->first_piece + i) % STAGES];
}

static bool is_on_gpu(uint64_t set, int i)
{
	return set >> i & 1;
}

/* A source that is multiplied must not be changed where it lies. */
static bool is_staged(const struct job *job, int i_src)
{
	return is_on_gpu(job->gpu_src, i_src) || i_src == job->i_factor;
}

static size_t count_staged(const struct job *job)
{
	size_t n = 0;
	int i;

	for (i = 0; i < job->n_src; i++)
		n += is_staged(job, i);
	/* The result may take the place of a source, where there is one. */
	return n ? n : job->gpu_dst != 0;
}

static bool overlap(const void *a, size_t a_bytes, const void *b,
		    size_t b_bytes)
{
	uintptr_t x = (uintptr_t)a;
	uintptr_t y = (uintptr_t)b;

	return x < y ? y - x < a_bytes : x - y < b_bytes;
}

/* Whether @job reads on the GPU what @before has not yet written there. */
static bool depends(const struct job *job, const struct job *before)
{
	size_t bytes = job->count * job->elem_bytes;
	size_t bytes_before = before->count * before->elem_bytes;
	int i, k;

	for (i = 0; i < job->n_src; i++)
		for (k = 0; k < before->n_dst; k++)
			if (is_on_gpu(job->gpu_src, i) &&
			    overlap(job->src[i], bytes, before->dst[k],
				    bytes_before))
				return true;
	return false;
}

static bool is_held(struct mem_gpu *gpu, const struct job *job)
{
	uint64_t i;

	for (i = 0; i < gpu->n_pieces; i++) {
		const struct job *before =
			gpu_job(gpu, piece_at(gpu, i)->number);

		if (before != job && depends(job, before))
			return true;
	}
	return false;
}

static int begin_piece(struct mem_gpu *gpu, struct job *job)
{
	struct piece *piece = piece_at(gpu, gpu->n_pieces);
	size_t n_staged = count_staged(job);
	/* Whole lines, so that every operand is aligned as the first is. */
	size_t room = gpu->stage_bytes / (n_staged ? n_staged : 1) &
		      ~(size_t)(BASE_LINE - 1);
	size_t at = job->n_begun;
	size_t count = base_min_size(room / job->elem_bytes, job->count - at);
	bool is_copied = false;
	char *to = piece->memory;
	int err = 0;
	int i;

	for (i = 0; i < job->n_src && !err; i++) {
		if (is_on_gpu(job->gpu_src, i)) {
			err = gpu_copy(gpu, to,
				       (const char *)job->src[i] +
					       at * job->elem_bytes,
				       count * job->elem_bytes);
			is_copied = true;
		}
		if (is_staged(job, i))
			to += room;
	}
	if (is_copied && !err)
		err = gpu_mark(gpu);
	if (err)
		return err;
	piece->number = gpu->issued + 1;
	piece->at = at;
	piece->count = count;
	piece->room = room;
	piece->mark = gpu->mark;
	job->n_begun += count;
	gpu->n_pieces++;
	return 0;
}

int stage_begin(struct mem_gpu *gpu, struct job *job, bool *all)
{
	int err = 0;

	*all = false;
	if (!job->n_begun && is_held(gpu, job))
		return 0;
	while (!err && job->n_begun < job->count && gpu->n_pieces < STAGES)
		err = begin_piece(gpu, job);
	*all = job->n_begun == job->count;
	return err;
}

/* The product of a staged source and the factor, in its place. */
static void multiply(struct mem_gpu *gpu, const struct job *job, char *vector,
		     const char *from, size_t count)
{
	reduce_fn *product = reduce_get(job->type, WREATH_PROD, false);
	size_t n_max = sizeof(gpu->factor) / job->elem_bytes;
	size_t i;

	for (i = 0; i < base_min_size(n_max, count); i++)
		memcpy(gpu->factor + i * job->elem_bytes, &job->factor,
		       job->elem_bytes);
	while (count) {
		size_t n = base_min_size(n_max, count);
		const void *src[] = {from, gpu->factor};
		void *dst[] = {vector};
		struct reduce_args args = {
			.dst = dst, .n_dst = 1, .src = src, .n_src = 2,
			.count = n,
		};

		product(&args);
		vector += n * job->elem_bytes;
		from += n * job->elem_bytes;
		count -= n;
	}
}

static void fold(struct mem_gpu *gpu, const struct job *job,
		 const struct piece *piece)
{
	const void *src[REDUCE_MAX];
	void *dst[REDUCE_MAX];
	size_t skip = piece->at * job->elem_bytes;
	char *staged = piece->memory;
	struct reduce_args args = {
		.dst = dst, .src = src, .n_src = job->n_src,
		.count = piece->count, .divisor = job->divisor,
	};
	int i;

	for (i = 0; i < job->n_src; i++) {
		src[i] = (const char *)job->src[i] + skip;
		if (!is_staged(job, i))
			continue;
		if (i == job->i_factor)
			multiply(gpu, job, staged,
				 is_on_gpu(job->gpu_src, i) ? staged : src[i],
				 piece->count);
		src[i] = staged;
		staged += piece->room;
	}
	for (i = 0; i < job->n_dst; i++)
		if (!is_on_gpu(job->gpu_dst, i))
			dst[args.n_dst++] = (char *)job->dst[i] + skip;
	if (job->gpu_dst)
		dst[args.n_dst++] = piece->memory;
	reduce_get(job->type, job->op, false)(&args);
}

/* What was copied in is there. */
static int finish_piece(struct mem_gpu *gpu, struct piece *piece)
{
	struct job *job = gpu_job(gpu, piece->number);
	size_t skip = piece->at * job->elem_bytes;
	int err = 0;
	int i;

	fold(gpu, job, piece);
	for (i = 0; i < job->n_dst && !err; i++)
		if (is_on_gpu(job->gpu_dst, i))
			err = gpu_copy(gpu, (char *)job->dst[i] + skip,
				       piece->memory,
				       piece->count * job->elem_bytes);
	if (!err && job->gpu_dst)
		err = gpu_mark(gpu);
	if (err)
		return err;
	if (piece->at + piece->count == job->count)
		job->mark = gpu->mark;
	/*
	 * Its memory may be used again although it is still copied out: what
	 * is copied into it comes later in the stream, and a piece that is not
	 * copied in is folded when all before it is done.
	 */
	gpu->first_piece++;
	gpu->n_pieces--;
	return 0;
}

bool stage_can_go(struct mem_gpu *gpu)
{
	return gpu->n_pieces && piece_at(gpu, 0)->mark <= gpu->mark_seen;
}

int stage_carry_on(struct mem_gpu *gpu)
{
	int err = 0;

	while (!err && stage_can_go(gpu))
		err = finish_piece(gpu, piece_at(gpu, 0));
	return err;
}
