/* SPDX-License-Identifier: MIT */
/*
 * The ground of the proof: the later parts follow every index and list of a
 * schedule without looking again, and size their memory by what is counted
 * here.  A schedule may come from anywhere, so nothing is taken for granted
 * but that the arrays are as long as their counts say.
 */
#include <inttypes.h>

#include "draft.h"
#include "verify.h"

/* Where in a schedule the checks are. */
struct place {
	const struct verify *verify;
	const struct sched *sched;
	uint32_t rank, lane, at;
	uint64_t list;	  /* a number for each list of peers */
	uint64_t *listed; /* by rank: the last list that named it */
};

#define refuse(place, ...)                                                     \
	verify_refuse((place)->rank, (place)->lane, (place)->at, __VA_ARGS__)

static int check_list(struct place *place, const char *name, uint32_t first,
		      uint32_t n)
{
	const struct sched *sched = place->sched;
	uint32_t i;

	if (first > sched->n_peers || n > sched->n_peers - first)
		return refuse(place,
			      "%s list [%" PRIu32 ", +%" PRIu32
			      ") leaves the %" PRIu32 " peers",
			      name, first, n, sched->n_peers);
	place->list++;
	for (i = 0; i < n; i++) {
		uint32_t peer = sched->peers[first + i];

		if (peer >= place->verify->n_ranks)
			return refuse(place,
				      "%s names rank %" PRIu32
				      ", not in [0, %" PRIu32 ")",
				      name, peer, place->verify->n_ranks);
		if (peer == place->rank)
			return refuse(place, "%s names the rank itself", name);
		if (place->listed[peer] == place->list)
			return refuse(place, "%s names rank %" PRIu32 " twice",
				      name, peer);
		place->listed[peer] = place->list;
	}
	return 0;
}

static int check_after(const struct place *place, const struct sched_step *step)
{
	const struct sched *sched = place->sched;

	if (step->after_lane == -1 && step->after_step == -1)
		return 0;
	/* As unsigned numbers, negative ones are too large as well. */
	if ((uint32_t)step->after_lane >= sched->n_lanes)
		return refuse(place,
			      "after_lane %" PRId32 " is not in [0, %" PRIu32
			      ")",
			      step->after_lane, sched->n_lanes);
	if ((uint32_t)step->after_step >=
	    sched->lanes[step->after_lane].n_steps)
		return refuse(place,
			      "after_step %" PRId32 " is not in [0, %" PRIu32
			      "), the steps of lane %" PRId32,
			      step->after_step,
			      sched->lanes[step->after_lane].n_steps,
			      step->after_lane);
	return 0;
}

static int check_flags(const struct place *place, const struct sched_step *step)
{
	const unsigned int known =
		SCHED_STORE | SCHED_SEND_FINAL | SCHED_RECV_FINAL |
		SCHED_SEND_INPUT | SCHED_RECV_INPUT | SCHED_SEND_AWAIT;

	if (step->flags & ~known)
		return refuse(place, "flags 0x%x has bits beyond 0x%x",
			      step->flags, known);
	if (step->local > SCHED_OUTPUT)
		return refuse(place, "local %u is not in [0, %d]", step->local,
			      SCHED_OUTPUT);
	if (step->local_at > step->n_recv)
		return refuse(place,
			      "local_at %" PRIu32 " is not in [0, %" PRIu32 "]",
			      step->local_at, step->n_recv);
	if (!step->n_recv && !step->local)
		return refuse(place, "it neither receives nor has a local "
				     "chunk, so there is nothing to work on");
	if (step->flags & SCHED_SEND_FINAL && !step->n_send)
		return refuse(place, "it is to send a final chunk to nobody");
	/* The sender may have written the output already: nothing to fold. */
	if (step->flags & SCHED_RECV_FINAL &&
	    (step->n_recv != 1 || step->local || !(step->flags & SCHED_STORE)))
		return refuse(place, "a final chunk is stored as it comes: one "
				     "message, nothing local, and stored");
	if (step->flags & SCHED_SEND_INPUT &&
	    (!step->n_send || step->n_recv || step->local != SCHED_INPUT))
		return refuse(place, "it is to send raw input and sends "
				     "something else or nothing");
	if (step->flags & SCHED_RECV_INPUT && !step->n_recv)
		return refuse(place, "it is to take raw input from nobody");
	if (step->flags & SCHED_SEND_AWAIT && !(step->flags & SCHED_SEND_INPUT))
		return refuse(place, "it is to await the readers of raw input "
				     "and sends none");
	return 0;
}

/* A message that is one rank's for one other: no third knows its length. */
static int check_paired(const struct place *place,
			const struct sched_step *step)
{
	if (step->n_send &&
	    (step->n_send > 1 || step->n_recv || step->local != SCHED_INPUT))
		return refuse(place, "it sends something else than its own "
				     "input, or to more than one rank");
	if (step->n_recv &&
	    (step->n_recv > 1 || step->local || !(step->flags & SCHED_STORE)))
		return refuse(place, "it does something else with a message "
				     "than to store it");
	return 0;
}

/* The rank has what the step works on, and the channel too. */
static int check_chunk(const struct place *place,
		       const struct sched_step *step)
{
	const struct verify *verify = place->verify;
	uint32_t channel = place->sched->lanes[place->lane].channel;
	uint32_t n_pieces; /* of a channel */
	int block;

	if (step->chunk >= verify->n_chunks)
		return refuse(place,
			      "chunk %" PRIu32 " is not in [0, %" PRIu32 ")",
			      step->chunk, verify->n_chunks);
	n_pieces = verify->n_pieces / (uint32_t)verify->shape->n_channels;
	if (step->chunk % verify->n_pieces / n_pieces != channel)
		return refuse(place,
			      "chunk %" PRIu32 " is channel %" PRIu32
			      "'s, the lane is channel %" PRIu32 "'s",
			      step->chunk,
			      step->chunk % verify->n_pieces / n_pieces,
			      channel);
	block = (int)verify_block(verify, step);
	if (step->local == SCHED_INPUT &&
	    !sched_has_input(verify->shape, (int)place->rank, block))
		return refuse(place, "the rank has no chunk %" PRIu32
				     " in its input", step->chunk);
	if ((step->flags & SCHED_STORE || step->local == SCHED_OUTPUT) &&
	    !sched_has_output(verify->shape, (int)place->rank, block))
		return refuse(place, "the rank has no chunk %" PRIu32
				     " in its output", step->chunk);
	/* One number, and two meanings: for that rank, and from it. */
	if (verify->is_crossing && step->local == SCHED_INPUT &&
	    step->flags & SCHED_STORE && (uint32_t)block != place->rank)
		return refuse(place, "it stores chunk %" PRIu32 " of its "
				     "input, which is for rank %d",
			      step->chunk, block);
	return 0;
}

static int check_step(struct place *place, const struct sched_step *step)
{
	int err = check_chunk(place, step);

	if (err)
		return err;
	if (step->send_lane >= place->verify->n_lanes)
		return refuse(place,
			      "send_lane %" PRIu32 " is not in [0, %" PRIu32
			      ")",
			      step->send_lane, place->verify->n_lanes);
	err = check_list(place, "recv", step->recv, step->n_recv);
	if (err)
		return err;
	err = check_list(place, "send", step->send, step->n_send);
	if (err)
		return err;
	err = check_after(place, step);
	if (err)
		return err;
	err = check_flags(place, step);
	if (!err && sched_is_paired(place->verify->shape->collective))
		err = check_paired(place, step);
	return err;
}

/* The lanes share the steps out among them, in order and without a gap. */
static int check_lanes(const struct place *place)
{
	const struct sched *sched = place->sched;
	const struct sched *first = place->verify->scheds[0];
	uint32_t n_steps = 0;
	uint32_t i;

	for (i = 0; i < sched->n_lanes; i++) {
		const struct sched_lane *lane = &sched->lanes[i];

		if (lane->step != n_steps ||
		    lane->n_steps > sched->n_steps - n_steps)
			return base_error(WREATH_EINVAL,
					  "rank %" PRIu32 " lane %" PRIu32
					  ": steps [%" PRIu32 ", +%" PRIu32
					  ") do not continue at %" PRIu32
					  " of %" PRIu32,
					  place->rank, i, lane->step,
					  lane->n_steps, n_steps,
					  sched->n_steps);
		n_steps += lane->n_steps;
		if (lane->channel >= (uint32_t)first->shape.n_channels ||
		    lane->channel != first->lanes[i].channel)
			return base_error(WREATH_EINVAL,
					  "rank %" PRIu32 " lane %" PRIu32
					  ": channel %" PRIu32 " is not in "
					  "[0, %d), or not that of rank 0, "
					  "%" PRIu32,
					  place->rank, i, lane->channel,
					  first->shape.n_channels,
					  first->lanes[i].channel);
		if (lane->box >= SCHED_BOXES ||
		    lane->box != first->lanes[i].box)
			return base_error(WREATH_EINVAL,
					  "rank %" PRIu32 " lane %" PRIu32
					  ": box %" PRIu32 " is not in "
					  "[0, %d), or not that of rank 0, "
					  "%" PRIu32,
					  place->rank, i, lane->box,
					  SCHED_BOXES, first->lanes[i].box);
	}
	if (n_steps != sched->n_steps)
		return base_error(WREATH_EINVAL,
				  "rank %" PRIu32 ": %" PRIu32 " of %" PRIu32
				  " steps are in no lane",
				  place->rank, sched->n_steps - n_steps,
				  sched->n_steps);
	return 0;
}

static bool shapes_are_equal(const struct sched_shape *a,
			     const struct sched_shape *b)
{
	int i;

	if (a->collective != b->collective || a->algo != b->algo ||
	    a->n_ranks != b->n_ranks || a->n_channels != b->n_channels ||
	    a->root != b->root || a->n_nodes != b->n_nodes ||
	    !a->nodes != !b->nodes)
		return false;
	if (a->nodes == b->nodes)
		return true;
	for (i = 0; i < a->n_ranks; i++) {
		if (a->nodes[i] != b->nodes[i])
			return false;
	}
	return true;
}

/* Blocks, pieces and chunks fit together, and to the shape. */
static int check_counts(const struct place *place)
{
	const struct sched *sched = place->sched;
	const struct sched *first = place->verify->scheds[0];
	const struct sched_shape *shape = &first->shape;
	uint32_t n_blocks = (uint32_t)sched_n_blocks(shape->collective,
						     shape->n_ranks);

	if (sched->n_blocks != n_blocks)
		return base_error(WREATH_EINVAL,
				  "rank %" PRIu32 ": n_blocks %" PRIu32
				  " is not %" PRIu32 ", as %s has",
				  place->rank, sched->n_blocks, n_blocks,
				  sched_collective_name(shape->collective));
	if (!sched->n_pieces || sched->n_pieces != first->n_pieces ||
	    sched->n_pieces % (uint32_t)shape->n_channels)
		return base_error(WREATH_EINVAL,
				  "rank %" PRIu32 ": n_pieces %" PRIu32
				  " is not that of rank 0, %" PRIu32
				  ", or no multiple of the %d channels",
				  place->rank, sched->n_pieces,
				  first->n_pieces, shape->n_channels);
	if (sched->n_chunks != (uint64_t)n_blocks * sched->n_pieces)
		return base_error(WREATH_EINVAL,
				  "rank %" PRIu32 ": n_chunks %" PRIu32
				  " is not that of %" PRIu32 " blocks with %"
				  PRIu32 " pieces",
				  place->rank, sched->n_chunks, n_blocks,
				  sched->n_pieces);
	return 0;
}

static int check_head(const struct place *place)
{
	const struct sched *sched = place->sched;
	const struct sched *first = place->verify->scheds[0];

	if (sched->rank < 0 || (uint32_t)sched->rank != place->rank)
		return base_error(WREATH_EINVAL,
				  "rank %" PRIu32
				  ": its schedule is that of rank %d",
				  place->rank, sched->rank);
	if (!shapes_are_equal(&sched->shape, &first->shape))
		return base_error(WREATH_EINVAL,
				  "rank %" PRIu32
				  ": its shape is not that of rank 0",
				  place->rank);
	if (sched->n_lanes != first->n_lanes ||
	    sched->n_lanes > SCHED_LANES_MAX)
		return base_error(WREATH_EINVAL,
				  "rank %" PRIu32 ": n_lanes %" PRIu32
				  " is not that of rank 0, %" PRIu32
				  ", or above %d",
				  place->rank, sched->n_lanes, first->n_lanes,
				  SCHED_LANES_MAX);
	return check_counts(place);
}

static int check_rank(struct place *place)
{
	const struct sched *sched = place->sched;
	int err = check_head(place);

	if (err)
		return err;
	err = check_lanes(place);
	for (place->lane = 0; !err && place->lane < sched->n_lanes;
	     place->lane++) {
		const struct sched_lane *lane = &sched->lanes[place->lane];

		for (place->at = 0; !err && place->at < lane->n_steps;
		     place->at++)
			err = check_step(place,
					 &sched->steps[lane->step + place->at]);
	}
	return err;
}

int verify_lists(const struct verify *verify)
{
	struct place place = {.verify = verify};
	int err = 0;

	place.listed = base_alloc(verify->n_ranks, sizeof(*place.listed));
	if (!place.listed)
		return WREATH_ENOMEM;
	for (place.rank = 0; !err && place.rank < verify->n_ranks;
	     place.rank++) {
		place.sched = verify->scheds[place.rank];
		err = check_rank(&place);
	}
	base_free(place.listed);
	return err;
}
