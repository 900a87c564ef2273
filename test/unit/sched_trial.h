/* SPDX-License-Identifier: MIT */
/* A fabric, a shape and a run of the simulator, for its tests. */
#ifndef SCHED_TRIAL_H
#define SCHED_TRIAL_H

#include <math.h>
#include <stdarg.h>
#include <stddef.h>

#include "sched_kit.h"

struct trial {
	struct sched_fabric fabric;
	struct sched_shape shape;
	struct sched_sim_args args;
	struct sched_sim sim;
};

static inline void describe(struct trial *trial, const char *text,
		     enum sched_collective collective, enum sched_algo algo,
		     uint64_t bytes)
{
	*trial = (struct trial){.args.bytes = bytes};
	sched_fabric_init(&trial->fabric);
	if (sched_fabric_read(&trial->fabric, "text", text) ||
	    sched_fabric_check(&trial->fabric, NULL))
		fail_msg("%s", base_error_text());
	trial->shape = (struct sched_shape){
		.collective = collective,
		.algo = algo,
		.n_ranks = trial->fabric.n_ranks,
		.n_nodes = trial->fabric.n_nodes,
		.n_channels = 1,
	};
}

/* In microseconds; nothing is left to release. */
static inline double run(struct trial *trial)
{
	struct sched_sim sim;

	trial->args.shape = &trial->shape;
	trial->args.fabric = &trial->fabric;
	if (sched_simulate(&trial->args, &trial->sim))
		fail_msg("%s %s of %llu bytes, %d channels, %d slots: %s",
			 sched_algo_name(trial->shape.algo),
			 sched_collective_name(trial->shape.collective),
			 (unsigned long long)trial->args.bytes,
			 trial->shape.n_channels, trial->fabric.n_slots,
			 base_error_text());
	sim = trial->sim;
	sched_sim_release(&trial->sim);
	trial->sim = sim;
	trial->sim.hops = NULL;
	return (double)sim.time_ps / 1e6;
}

static inline double predict(const char *text, enum sched_collective collective,
		      enum sched_algo algo, uint64_t bytes)
{
	struct trial trial;

	describe(&trial, text, collective, algo, bytes);
	return run(&trial);
}

static inline void is_near(double have, double want, double share)
{
	if (!(fabs(have - want) <= share * fabs(want)))
		fail_msg("%g us, not %g", have, want);
}

#endif
