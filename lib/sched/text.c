/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>

#include "sched.h"

/* Chunks stand in a column where that leaves the line within 80 characters. */
#define BODY_WIDTH_MAX 68

/* @n counts on past @size, so that the caller learns the whole length. */
struct text {
	char *out;
	size_t size, n;
};

static void put(struct text *text, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void put(struct text *text, const char *fmt, ...)
{
	bool fits = text->n < text->size;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(fits ? text->out + text->n : NULL,
		      fits ? text->size - text->n : 0, fmt, ap);
	va_end(ap);
	if (n > 0)
		text->n += (size_t)n;
}

/* "3" or "3 5", and "0-2" for three or more in a row, which fold in order. */
static void put_peers(struct text *text, const uint32_t *peers, uint32_t n)
{
	uint32_t i = 0;

	while (i < n) {
		uint32_t run = 1;

		while (i + run < n && peers[i + run] == peers[i] + run)
			run++;
		put(text, " %" PRIu32, peers[i]);
		if (run > 2)
			put(text, "-%" PRIu32, peers[i + run - 1]);
		i += run > 2 ? run : 1;
	}
}

/* By whether what is sent and taken is raw input, and final. */
static const char *const recv_names[] = {
	"recv", "recv input", "recv final", "recv input final",
};
static const char *const send_names[] = {
	"send", "send input", "send final", "send input final",
};

static unsigned int kind_of(unsigned int flags, unsigned int input,
			    unsigned int final)
{
	return ((flags & input) ? 1 : 0) + ((flags & final) ? 2 : 0);
}

/* What is folded, in the order in which it is. */
static void put_operands(struct text *text, const struct sched *sched,
			 const struct sched_step *step)
{
	const char *recv = recv_names[kind_of(step->flags, SCHED_RECV_INPUT,
					      SCHED_RECV_FINAL)];
	const uint32_t *peers = sched->peers + step->recv;
	uint32_t before = step->local ? step->local_at : step->n_recv;

	if (before) {
		put(text, "%s", recv);
		put_peers(text, peers, before);
	}
	if (step->local)
		put(text, "%s%s", before ? " + " : "",
		    step->local == SCHED_INPUT ? "input" : "output");
	if (before < step->n_recv) {
		put(text, " + %s", recv);
		put_peers(text, peers + before, step->n_recv - before);
	}
}

static void put_results(struct text *text, const struct sched *sched,
			const struct sched_step *step, uint32_t lane)
{
	bool stores = step->flags & SCHED_STORE;

	if (stores)
		put(text, " -> store");
	if (!step->n_send)
		return;
	put(text, "%s %s", stores ? "," : " ->",
	    send_names[kind_of(step->flags, SCHED_SEND_INPUT,
			       SCHED_SEND_FINAL)]);
	put_peers(text, sched->peers + step->send, step->n_send);
	if (step->send_lane != lane)
		put(text, " in lane %" PRIu32, step->send_lane);
	if (step->flags & SCHED_SEND_AWAIT)
		put(text, ", await");
}

static void put_body(struct text *text, const struct sched *sched,
		     uint32_t lane, uint32_t at)
{
	const struct sched_step *step =
		&sched->steps[sched->lanes[lane].step + at];

	put(text, "lane %" PRIu32 " step %" PRIu32 ": ", lane, at);
	put_operands(text, sched, step);
	put_results(text, sched, step, lane);
}

/* The length of the longest line, the chunk left out, within the bound. */
static size_t body_width(const struct sched *sched)
{
	uint32_t lane, at;
	size_t width = 0;

	for (lane = 0; lane < sched->n_lanes; lane++) {
		for (at = 0; at < sched->lanes[lane].n_steps; at++) {
			struct text body = {NULL, 0, 0};

			put_body(&body, sched, lane, at);
			if (body.n > width && body.n <= BODY_WIDTH_MAX)
				width = body.n;
		}
	}
	return width;
}

static void put_step(struct text *text, const struct sched *sched,
		     uint32_t lane, uint32_t at, size_t width)
{
	const struct sched_step *step =
		&sched->steps[sched->lanes[lane].step + at];
	size_t end = text->n + width;

	put_body(text, sched, lane, at);
	put(text, "%*s   chunk %" PRIu32,
	    text->n < end ? (int)(end - text->n) : 0, "", step->chunk);
	if (sched->n_blocks > 1 && sched->n_pieces > 1)
		put(text, " (block %" PRIu32 " piece %" PRIu32 ")",
		    step->chunk / sched->n_pieces,
		    step->chunk % sched->n_pieces);
	if (step->after_lane >= 0)
		put(text, ", after lane %" PRId32 " step %" PRId32,
		    step->after_lane, step->after_step);
	put(text, "\n");
}

static void put_head(struct text *text, const struct sched *sched)
{
	uint32_t lane;

	put(text, "collective  %s\n",
	    sched_collective_name(sched->shape.collective));
	put(text, "algorithm   %s\n", sched_algo_name(sched->shape.algo));
	put(text, "rank        %d of %d\n", sched->rank, sched->shape.n_ranks);
	if (sched_is_rooted(sched->shape.collective))
		put(text, "root        %d\n", sched->shape.root);
	if (sched->shape.n_nodes > 1)
		put(text, "node        %d of %d\n",
		    sched_node_of(&sched->shape, sched->rank),
		    sched->shape.n_nodes);
	put(text, "channels    %d\n", sched->shape.n_channels);
	put(text, "chunks      %" PRIu32 " a pass", sched->n_chunks);
	if (sched->n_blocks > 1)
		put(text, ": %" PRIu32 " blocks of %" PRIu32 " piece%s",
		    sched->n_blocks, sched->n_pieces,
		    sched->n_pieces == 1 ? "" : "s");
	put(text, "\n");
	for (lane = 0; lane < sched->n_lanes; lane++)
		put(text, "lane %-2" PRIu32 "     channel %" PRIu32
			   ", box %" PRIu32 ", steps %" PRIu32 "\n",
		    lane, sched->lanes[lane].channel, sched->lanes[lane].box,
		    sched->lanes[lane].n_steps);
	put(text, "\n");
}

size_t sched_print(const struct sched *sched, char *out, size_t size)
{
	struct text text = {out, size, 0};
	size_t width = body_width(sched);
	uint32_t lane, at;

	if (size)
		out[0] = '\0';
	put_head(&text, sched);
	for (lane = 0; lane < sched->n_lanes; lane++) {
		for (at = 0; at < sched->lanes[lane].n_steps; at++)
			put_step(&text, sched, lane, at, width);
	}
	return text.n;
}
