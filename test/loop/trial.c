/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "test/loop/trial.h"

#define PAGE ((size_t)4096)
#define CANARY 0x5a
#define MARGIN ((size_t)64) /* of canaries, where there is no guard page */

static size_t round_up(size_t n)
{
	return (n + PAGE - 1) / PAGE * PAGE;
}

static int get_memory(struct rank *rank, struct buffer *buffer, size_t bytes)
{
	void *at;

	buffer->map_bytes = round_up(bytes);
	if (buffer->kind == BUFFER_HEAP) {
		buffer->map_bytes = bytes;
		at = malloc(bytes);
	} else if (buffer->kind == BUFFER_ALLOC) {
		if (wreath_mem_alloc(bytes, &at))
			return rank_broken(rank, "wreath_mem_alloc: %s",
					   wreath_error_text());
		buffer->map_bytes = bytes;
	} else {
		buffer->map_bytes += 2 * PAGE;
		at = mmap(NULL, buffer->map_bytes, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at == MAP_FAILED)
			at = NULL;
		else if (mprotect((char *)at + PAGE,
				  buffer->map_bytes - 2 * PAGE,
				  PROT_READ | PROT_WRITE))
			return rank_broken(rank, "no memory behind a guard");
	}
	if (!at)
		return rank_broken(rank, "no memory for %zu bytes", bytes);
	buffer->map = at;
	buffer->usable = at;
	buffer->usable_bytes = buffer->map_bytes;
	if (buffer->kind != BUFFER_HEAP && buffer->kind != BUFFER_ALLOC) {
		buffer->usable += PAGE;
		buffer->usable_bytes -= 2 * PAGE;
	}
	return 0;
}

int buffer_new(struct rank *rank, enum buffer_kind kind, size_t bytes,
	       size_t shift, struct buffer *out)
{
	size_t before = MARGIN;
	int err;

	memset(out, 0, sizeof(*out));
	out->kind = kind;
	out->bytes = bytes;
	err = get_memory(rank, out, bytes + shift + 2 * MARGIN);
	if (err)
		return err;
	if (kind == BUFFER_AT_START)
		before = shift;
	else if (kind == BUFFER_AT_END || kind == BUFFER_REGISTER)
		before = out->usable_bytes - bytes - shift;
	else
		before += shift;
	out->data = out->usable + before;
	memset(out->usable, CANARY, before);
	memset(out->data + bytes, CANARY, out->usable_bytes - before - bytes);
	if (kind == BUFFER_REGISTER && bytes &&
	    wreath_mem_register(out->data, bytes))
		return rank_broken(rank, "wreath_mem_register: %s",
				   wreath_error_text());
	return 0;
}

static int check_canaries(struct rank *rank, const struct buffer *buffer)
{
	const char *at;

	for (at = buffer->usable;
	     at < buffer->usable + buffer->usable_bytes; at++) {
		if (at == buffer->data)
			at += buffer->bytes;
		if (at == buffer->usable + buffer->usable_bytes)
			break;
		if (*at != CANARY)
			return rank_broken(
				rank, "a byte was written %td bytes from the "
				      "start of a buffer of %zu (kind %d)",
				at - buffer->data, buffer->bytes,
				(int)buffer->kind);
	}
	return 0;
}

static int give_back(struct buffer *buffer)
{
	int err = 0;

	if (!buffer->map)
		return 0;
	if (buffer->kind == BUFFER_REGISTER && buffer->bytes)
		err = wreath_mem_deregister(buffer->data);
	if (buffer->kind == BUFFER_HEAP)
		free(buffer->map);
	else if (buffer->kind != BUFFER_ALLOC)
		munmap(buffer->map, buffer->map_bytes);
	else
		err = wreath_mem_free(buffer->map);
	buffer->map = NULL;
	return err;
}

int buffer_free(struct rank *rank, struct buffer *buffer)
{
	int err;

	if (!buffer->map)
		return 0;
	err = check_canaries(rank, buffer);
	if (give_back(buffer))
		err = rank_broken(rank, "a buffer was not taken back: %s",
				  wreath_error_text());
	return err;
}

void trial_drop(struct trial *trial)
{
	give_back(&trial->recv);
	give_back(&trial->send);
}

/* ---- trials ---- */

void trials_init(struct trials *trials, struct rank *rank, uint64_t seed)
{
	trials->state = seed;
	trials->own = seed ^ (uint64_t)(rank->rank + 1) << 32;
	trials->hash = 0;
}

static size_t draw_shift(uint64_t *state)
{
	return ranks_random(state) % 3 ? 0 : ranks_between(state, 1, 63);
}

void trial_draw(struct trials *trials, struct rank *rank, size_t count,
		struct trial *trial)
{
	uint64_t *state = &trials->state;
	uint64_t *own = &trials->own;

	memset(trial, 0, sizeof(*trial));
	trial->count = count;
	trial->model.n_ranks = rank->n_ranks;
	trial->model.type = (enum wreath_type)(ranks_random(state) %
					       WREATH_N_TYPES);
	trial->model.op = (enum wreath_op)(ranks_random(state) % WREATH_N_OPS);
	trial->model.kind = (enum model_kind)(ranks_random(state) % 2);
	trial->model.seed = ranks_random(state);
	trial->in_place = ranks_random(state) % 2;
	/* Who has which kind of memory is nobody else's business. */
	trial->send_kind = (enum buffer_kind)(ranks_random(own) %
					      BUFFER_N_KINDS);
	trial->recv_kind = (enum buffer_kind)(ranks_random(own) %
					      BUFFER_N_KINDS);
	trial->send_shift = draw_shift(own);
	trial->recv_shift = draw_shift(own);
	/* Working out the reference costs more than the operation. */
	trial->checks = trial->model.seed % (uint64_t)rank->n_ranks ==
			(uint64_t)rank->rank;
}

int trial_begin(struct rank *rank, struct trial *trial,
		struct wreath_comm *comm, struct wreath_stream *stream)
{
	const struct model *model = &trial->model;
	size_t bytes = trial->count * wreath_type_size(model->type);
	void *send;
	int err = buffer_new(rank, trial->recv_kind, bytes, trial->recv_shift,
			     &trial->recv);

	if (!err && !trial->in_place)
		err = buffer_new(rank, trial->send_kind, bytes,
				 trial->send_shift, &trial->send);
	if (err)
		return err;
	send = trial->in_place ? trial->recv.data : trial->send.data;
	if (!trial->in_place)
		memset(trial->recv.data, 0xee, bytes);
	model_fill(model, rank->rank, send, trial->count);
	return wreath_all_reduce(send, trial->recv.data, trial->count,
				 model->type, model->op, comm, stream);
}

static int check_input(struct rank *rank, const struct trial *trial)
{
	size_t bytes = trial->send.bytes;
	char *again = malloc(bytes + 1);
	int err = 0;

	model_fill(&trial->model, rank->rank, again, trial->count);
	if (memcmp(again, trial->send.data, bytes))
		err = rank_broken(rank, "the input of %zu elements changed",
				  trial->count);
	free(again);
	return err;
}

int trial_end(struct rank *rank, struct trials *trials, struct trial *trial)
{
	char text[256];
	int err = 0;
	int later;

	if (trial->checks && !model_check(&trial->model, trial->recv.data,
					  trial->count, text))
		err = rank_broken(rank, "%s%s", text,
				  trial->in_place ? ", in place" : "");
	if (!err && !trial->in_place)
		err = check_input(rank, trial);
	trials->hash = trials->hash * 31 + model_hash(trial->recv.data,
						      trial->recv.bytes);
	later = buffer_free(rank, &trial->recv);
	if (!err)
		err = later;
	later = buffer_free(rank, &trial->send);
	return err ? err : later;
}

size_t trial_count(uint64_t *state, size_t bytes)
{
	/* As many trials between two powers of two as between any others. */
	unsigned int bits = 0;

	while ((size_t)1 << (bits + 1) <= bytes / 8)
		bits++;
	return ranks_random(state) & (((size_t)1 << ranks_between(state, 0,
								  bits)) -
				      1);
}

int trials_body(struct rank *rank)
{
	const struct trials_plan *plan = rank->arg;
	struct trials trials;
	int err = 0;
	int i;

	trials_init(&trials, rank, plan->seed);
	for (i = 0; i < plan->n_trials && !err; i++) {
		struct trial trial;

		trial_draw(&trials, rank,
			   trial_count(&trials.state, plan->bytes), &trial);
		err = trial_run(rank, &trials, &trial);
	}
	trials_tell(&trials, rank);
	return err;
}

void trials_tell(const struct trials *trials, struct rank *rank)
{
	rank_result(rank)->values[0] = trials->hash;
}

uint64_t trials_expect_same(const struct ranks *run)
{
	uint64_t hash = run->shared->results[0].values[0];
	int i;

	for (i = 1; i < run->n; i++) {
		if (run->shared->results[i].values[0] == hash)
			continue;
		fail_msg("the results of rank %d have other bits than those "
			 "of rank 0", i);
	}
	return hash;
}
