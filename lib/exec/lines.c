/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "exec/inner.h"

/*
 * Steps of small messages: data and arrival word share lines of 64 bytes, so
 * that one message is one inline WRITE and one line that changes hands.
 */

static int have_lines(struct exec_plan *plan, struct exec_lane *lane,
		      const struct exec_step *step, size_t n_lines)
{
	size_t i;
	uint32_t r;

	if (!exec_is_after(plan, lane, step))
		return 0;
	for (r = lane->n_arrived; r < step->n_recv; r++) {
		const struct net_lane *end = step->recv[r];

		for (i = 0; i < n_lines; i++) {
			switch (net_line_arrived(end, i, plan->signature)) {
			case NET_ARRIVED:
				continue;
			case NET_MISMATCH:
				return exec_mismatch(plan, end);
			case NET_NONE:
				lane->waits_for = end;
				lane->n_arrived = r;
				return 0;
			}
		}
	}
	for (r = 0; r < step->n_send; r++) {
		if (net_can_send(step->send[r], NET_LINE_SLOTS))
			continue;
		lane->waits_for = step->send[r];
		return 0;
	}
	return 1;
}

/* Fold line by line: the payload of a message is not contiguous. */
static void fold_lines(const struct exec_plan *plan,
		       const struct exec_step *step, const char *own,
		       size_t bytes, char *out)
{
	const struct exec_args *args = plan->args;
	const void *src[REDUCE_MAX];
	void *dst[1];
	struct reduce_args fold = {
		.dst = dst,
		.n_dst = 1,
		.src = src,
		.divisor = exec_divisor(plan, step),
	};
	size_t at, i;

	for (at = 0, i = 0; at < bytes; at += NET_LINE_DATA, i++) {
		uint32_t n = 0;
		uint32_t r;

		for (r = 0; r < step->n_recv; r++) {
			if (step->local && r == step->local_at)
				src[n++] = own + at;
			src[n++] = net_lines(step->recv[r]) + i * BASE_LINE;
		}
		if (step->local && step->local_at >= step->n_recv)
			src[n++] = own + at;
		dst[0] = out + at;
		fold.n_src = (int)n;
		fold.count = base_min_size(NET_LINE_DATA, bytes - at) /
			     args->elem_bytes;
		args->fold(&fold);
	}
}

static int send_lines(struct exec_plan *plan,
		      const struct exec_step *step, const char *from,
		      size_t bytes, size_t n_lines)
{
	/* Not the stack's: what travels behind a short payload is ours. */
	char *lines = plan->lines;
	size_t at, i;
	uint32_t s;
	int err;

	for (at = 0, i = 0; at < bytes; at += NET_LINE_DATA, i++) {
		size_t n = base_min_size(NET_LINE_DATA, bytes - at);

		memcpy(lines + i * BASE_LINE, from + at, n);
	}
	for (s = 0; s < step->n_send; s++) {
		struct net_lane *end = step->send[s];
		uint64_t word = net_word(end->n_sent + 1, plan->signature);

		for (i = 0; i < n_lines; i++)
			memcpy(lines + i * BASE_LINE + NET_LINE_DATA, &word,
			       sizeof(word));
		err = net_send_lines(end, lines, n_lines,
				     plan->signature);
		if (err)
			return err;
	}
	return 0;
}

int exec_step_lines(struct exec_plan *plan, struct exec_lane *lane)
{
	const struct exec_step *step = &lane->steps[lane->step];
	char result[EXEC_LINES_BYTES];
	const char *from = NULL;
	size_t offset, bytes, n_lines;
	uint32_t r;
	int err;

	bytes = exec_chunk(plan, step, 0, &offset);
	/* An empty chunk still is a message, to keep both ends in step. */
	n_lines = bytes ? (bytes + NET_LINE_DATA - 1) / NET_LINE_DATA : 1;
	err = have_lines(plan, lane, step, n_lines);
	if (err <= 0)
		return err;
	if (step->local)
		from = exec_own_chunk(plan, step, offset, bytes);
	if (step->n_recv || exec_divisor(plan, step)) {
		char *out = step->flags & SCHED_STORE
				    ? exec_at(&plan->args->out, step->block,
					      offset)
				    : result;

		fold_lines(plan, step, from, bytes, out);
		from = out;
	} else if (step->flags & SCHED_STORE && bytes) {
		char *out = exec_at(&plan->args->out, step->block, offset);

		if (out != from)
			memcpy(out, from, bytes);
	}
	if (step->n_send) {
		err = send_lines(plan, step, from, bytes, n_lines);
		if (err)
			return err;
	}
	for (r = 0; r < step->n_recv; r++) {
		err = net_consume(step->recv[r], NET_LINE_SLOTS / 2);
		if (err)
			return err;
	}
	return 1;
}
