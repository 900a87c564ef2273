/* SPDX-License-Identifier: MIT */
/* The plans of a communicator, each made when it is first needed. */
#include "comm/inner.h"

/* The connections that @sched needs and that are not there. */
static void find_missing(const struct wreath_comm *comm,
			const struct sched *sched, bool *needed)
{
	uint32_t i, j, k;

	for (i = 0; i < sched->n_lanes; i++) {
		const struct sched_lane *lane = &sched->lanes[i];

		for (j = lane->step; j < lane->step + lane->n_steps; j++) {
			const struct sched_step *step = &sched->steps[j];
			uint32_t out = step->n_send
					       ? sched->lanes[step->send_lane]
							 .channel
					       : 0;

			for (k = 0; k < step->n_recv; k++)
				needed[sched->peers[step->recv + k] *
					       NET_CHANNELS_MAX +
				       lane->channel] = true;
			for (k = 0; k < step->n_send; k++)
				needed[sched->peers[step->send + k] *
					       NET_CHANNELS_MAX + out] = true;
		}
	}
	for (i = 0; i < (uint32_t)comm->n_ranks * NET_CHANNELS_MAX; i++)
		needed[i] &= !comm->net->conns[i];
}

static int connect_for(struct wreath_comm *comm, const struct sched *sched,
		       const struct net_sign *sign)
{
	size_t n = (size_t)comm->n_ranks * NET_CHANNELS_MAX;
	bool *needed = base_alloc(n, sizeof(*needed));
	int err;

	if (!needed)
		return WREATH_ENOMEM;
	net_sign_post(comm->net, sign);
	find_missing(comm, sched, needed);
	/* Also where none is missing: others may need some, and all ranks come
	 * here together. */
	err = comm_connect(comm, needed, sign);
	base_free(needed);
	return err;
}

static int plan_new(struct wreath_comm *comm, const struct sched_shape *shape,
		    const struct net_sign *sign, struct comm_plan *plan)
{
	int err = sched_make(shape, comm->rank, &plan->sched);

	/* Sends and receives connect those who take part in them. */
	if (!err && shape->collective != SCHED_EXCHANGE)
		err = connect_for(comm, plan->sched, sign);
	return err ? err : exec_plan_new(comm->net, plan->sched, &comm->guard,
					 &plan->plan);
}

static void plan_free(struct comm_plan *plan)
{
	exec_plan_free(plan->plan);
	sched_free(plan->sched);
	base_free(plan);
}

int comm_plan_new(struct wreath_comm *comm, int n_channels,
		  const struct net_sign *sign, struct exec_plan **out)
{
	struct comm_plan **list = &comm->plans[sign->collective][sign->algo];
	struct sched_shape shape = {
		.collective = (enum sched_collective)sign->collective,
		.algo = (enum sched_algo)sign->algo,
		.n_ranks = comm->n_ranks,
		.n_channels = n_channels,
		.root = (int)sign->root,
		.n_nodes = comm->n_nodes,
		.nodes = comm->nodes,
	};
	struct comm_plan *plan = base_alloc(1, sizeof(*plan));
	int err;

	if (!plan)
		return WREATH_ENOMEM;
	plan->root = shape.root;
	plan->n_channels = n_channels;
	err = plan_new(comm, &shape, sign, plan);
	if (err) {
		plan_free(plan);
		return err;
	}
	plan->next = *list;
	*list = plan;
	*out = plan->plan;
	return 0;
}

void comm_plans_free(struct wreath_comm *comm)
{
	int c, a;

	for (c = 0; c < SCHED_N_COLLECTIVES; c++) {
		for (a = 0; a < SCHED_N_ALGOS; a++) {
			while (comm->plans[c][a]) {
				struct comm_plan *plan = comm->plans[c][a];

				comm->plans[c][a] = plan->next;
				plan_free(plan);
			}
		}
	}
}
