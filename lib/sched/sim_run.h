/* SPDX-License-Identifier: MIT */
/* The simulation under way: what its files share. */
#ifndef SCHED_SIM_RUN_H
#define SCHED_SIM_RUN_H

#include "sched.h"
#include "sim_class.h"
#include "sim_cut.h"
#include "sim_net.h"
#include "sim_queue.h"

/* An event's @what: its kind in the upper bits, whom it concerns in the rest.
 */
enum sim_kind {
	SIM_WORKED,  /* a rank: its step is done, or may send another */
	SIM_HOP,     /* a message: it is at its next link */
	SIM_ARRIVED, /* a receive queue: a message is there */
	SIM_CREDIT,  /* a send queue: half of the window; with: the step */
	SIM_GRANT,   /* a send queue: it may be used */
};
#define SIM_KIND_SHIFT 29
#define SIM_WHOM ((1u << SIM_KIND_SHIFT) - 1)

struct sim_rx {
	uint32_t tx, lane; /* of all */
	uint32_t n_waiting, n_arrived, n_uncredited;
	uint32_t back_link; /* by which the credit leaves */
	uint64_t back_ps;   /* and how long it is under way */
};

struct sim_tx {
	uint32_t rx, lane; /* of all */
	uint32_t path;	   /* of all */
	uint32_t n_out;	   /* messages without credit */
	uint32_t n_sent;
	uint8_t n_links;
	bool is_straight; /* nobody else uses the last of its two links */
};

struct sim_lane {
	uint64_t pass;
	uint32_t step;
	uint32_t n_arrived; /* of the step's list, looked at so far */
	bool is_done;
};

struct sim_rank {
	const struct sim_class *class;
	uint32_t rx, tx; /* its first */
	uint32_t lane;	 /* at work on, or was last */
	uint32_t i_send;
	uint32_t traced; /* the step at work, SIM_NONE: not kept */
	uint32_t before; /* the step before it */
	bool is_busy;
};

struct sim_message {
	uint64_t bytes, end_ps;
	uint32_t tx;
	uint32_t hop; /* or the next that is free */
};

/* A step that ran.  @with: the queue that it waited for. */
struct sim_trace {
	uint64_t start_ps, end_ps, pass;
	uint32_t before, lane, step, with;
	enum sched_sim_cause cause;
};

struct sim {
	const struct sched_sim_args *args;
	uint64_t passes_max; /* to run; 0: as args say */
	const struct sched_shape *shape;
	const struct sched_fabric *fabric;
	struct sim_cut cut;
	struct sim_net net;
	struct sim_queue queue;

	uint64_t n_passes; /* to run, of those of the cut */
	uint32_t n_classes; /* rank r is of class r mod it */
	uint32_t n_ranks;   /* that run */
	uint32_t n_lanes;   /* of a rank */
	uint32_t n_tx, n_rx;
	struct sim_class *classes;
	struct sim_rank *ranks;
	struct sim_lane *lanes;
	struct sim_tx *txs;
	struct sim_rx *rxs;
	uint32_t *paths;
	uint32_t *sent_traced; /* [n_rx * window], the steps that sent */

	struct sim_message *messages;
	uint32_t n_messages, free_message;
	uint32_t batch; /* messages of one credit */
	uint64_t reduce_per_byte, copy_per_byte; /* sim_per_byte() */

	struct sim_trace *traces;
	uint32_t n_traces, traces_room;
	bool is_traced;
	bool has_skipped;  /* steps that have nothing to do */
	uint32_t n_undone; /* lanes */
	uint32_t last;	   /* step that ended, as kept */
	uint64_t end_ps, n_sent, n_steps;
};

/* sim_build.c: all tables, from args; what is there is sim.c's to release. */
int sim_build(struct sim *sim);
void sim_classes_release(struct sim *sim);

/* sim_run.c */
int sim_run(struct sim *sim);

/* sim_move.c: a message into a queue; at its next link; the step's messages
 * are taken, and what they were in is free again. */
void sim_send(struct sim *sim, const struct sim_rank *rank, uint32_t i_tx,
	      uint64_t bytes);
void sim_hop(struct sim *sim, uint32_t at);
void sim_consume(struct sim *sim, const struct sim_rank *rank,
		 const struct sim_step *step);

/* sim_path.c */
int sim_trace_path(struct sim *sim, struct sched_sim *out);

static inline void sim_push(struct sim *sim, uint64_t ps, enum sim_kind kind,
			    uint32_t whom, uint32_t with)
{
	sim_queue_push(&sim->queue, ps,
		       (uint32_t)kind << SIM_KIND_SHIFT | whom, with);
}

#endif
