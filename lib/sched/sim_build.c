/* SPDX-License-Identifier: MIT */
/* Which ranks run, what they run, and how their queues are joined. */
#include <inttypes.h>

#include "sim_run.h"

/* Beyond so many queues of a kind their tables do not fit 4 GB. */
#define QUEUES_MAX (1u << 24)
/* Schedules of all ranks: where they are alike a few of them are looked at. */
#define COMPARED_MAX 128
/* Steps of all ranks that are kept one by one: 24 bytes each. */
#define STEPS_MAX (1u << 24)
/* Fewer passes than that do not show how long one takes among others: the
 * slots are not yet full. */
#define PASSES_MIN 64

void sim_classes_release(struct sim *sim)
{
	uint32_t i;

	for (i = 0; sim->classes && i < sim->n_classes; i++)
		sim_class_release(&sim->classes[i]);
	base_free(sim->classes);
	sim->classes = NULL;
	sim->n_classes = 0;
}

static int make_classes(struct sim *sim, uint32_t n)
{
	uint32_t i;

	sim->classes = base_alloc(n, sizeof(*sim->classes));
	if (!sim->classes)
		return WREATH_ENOMEM;
	sim->n_classes = n;
	for (i = 0; i < n; i++) {
		int err = sim_class_make(&sim->classes[i], sim->shape, (int)i);

		if (err)
			return err;
	}
	return 0;
}

/*
 * Does every rank do the same as the one of its class?  Of many ranks a sample
 * is looked at: the last ones, next to the first, and others by chance, but
 * always the same.
 */
static int are_alike(struct sim *sim, bool *alike)
{
	uint32_t n = (uint32_t)sim->shape->n_ranks;
	uint32_t n_others = n - sim->n_classes;
	uint32_t n_looks = n_others < COMPARED_MAX ? n_others : COMPARED_MAX;
	uint32_t i;

	*alike = true;
	for (i = 0; *alike && i < n_looks; i++) {
		struct sim_class other;
		uint32_t r = n - 1 - i;
		int err;

		if (i > n_looks / 2 && n_others > COMPARED_MAX)
			r = sim->n_classes + (i * 2654435761u >> 8) % n_others;
		err = sim_class_make(&other, sim->shape, (int)r);
		if (err)
			return err;
		*alike = sim_class_is_same(&other,
					   &sim->classes[r % sim->n_classes]);
		sim_class_release(&other);
	}
	return 0;
}

/* @period ranks in a turn: are those of each turn alike?  Else no class is. */
static int try_period(struct sim *sim, uint32_t period, bool *is_right)
{
	int err;

	*is_right = false;
	if (!period || (uint32_t)sim->shape->n_ranks % period)
		return 0;
	err = make_classes(sim, period);
	if (!err)
		err = are_alike(sim, is_right);
	if (err || !*is_right)
		sim_classes_release(sim);
	return err;
}

static uint32_t n_per_node(const struct sim *sim)
{
	return (uint32_t)(sim->fabric->n_ranks / sim->fabric->n_nodes);
}

static uint64_t block_bytes(const struct sim *sim)
{
	uint64_t n = (uint64_t)sched_n_blocks(sim->shape->collective,
					      sim->shape->n_ranks);

	return (sim->args->bytes + n - 1) / n;
}

static void cut(struct sim *sim)
{
	sim_cut_make(&sim->cut, sim->fabric, sim->shape->n_channels,
		     block_bytes(sim), sim->classes[0].n_pieces);
}

/*
 * Fold if fabric and schedule allow; else give all ranks of a kind one
 * schedule if the chunks are equally long, or each its own.
 */
static int choose_classes(struct sim *sim)
{
	uint32_t unit = 0;
	uint32_t n = (uint32_t)sim->shape->n_ranks;
	bool is_right = false;
	int err;

	if (!sim->args->is_plain)
		unit = (uint32_t)sim_net_unit(sim->fabric) * n_per_node(sim);
	sim->n_ranks = n;
	if (unit && unit < n) {
		err = try_period(sim, unit, &is_right);
		if (err)
			return err;
	}
	if (is_right) {
		sim->n_ranks = unit;
		cut(sim);
		sim->cut.is_even = true;
		return 0;
	}
	err = try_period(sim, 1, &is_right);
	if (!err && !is_right && n_per_node(sim) > 1 &&
	    n_per_node(sim) < n)
		err = try_period(sim, n_per_node(sim), &is_right);
	if (err)
		return err;
	if (is_right) {
		cut(sim);
		if (sim_cut_is_even(&sim->cut, sim->shape->n_channels) ||
		    sim->classes[0].n_steps > STEPS_MAX / n) {
			sim->cut.is_even = true;
			return 0;
		}
		sim_classes_release(sim);
	}
	err = make_classes(sim, n);
	if (err)
		return err;
	cut(sim);
	sim->cut.is_even = sim_cut_is_even(&sim->cut,
					   sim->shape->n_channels);
	return 0;
}

/* Passes to run of those that there are: sched_sim_args.messages_enough. */
static void choose_passes(struct sim *sim, uint64_t n_sent)
{
	uint64_t n = sim->passes_max;

	if (!n) {
		n = sim->cut.n_passes;
		if (sim->args->messages_enough && n_sent)
			n = sim->args->messages_enough / n_sent;
		if (n < PASSES_MIN)
			n = PASSES_MIN;
	}
	sim->n_passes = n < sim->cut.n_passes ? n : sim->cut.n_passes;
}

static int check_size(struct sim *sim)
{
	uint64_t n_sent = 0, limit = sim->args->messages_max;
	uint32_t r;

	if (sim->n_tx > QUEUES_MAX || sim->n_rx > QUEUES_MAX)
		return base_error(WREATH_EUNSUP,
				  "%s of %d ranks has more than %u pairs that "
				  "talk: too many to simulate",
				  sched_algo_name(sim->shape->algo),
				  sim->shape->n_ranks, QUEUES_MAX);
	for (r = 0; r < sim->n_ranks; r++)
		n_sent += sim->classes[r % sim->n_classes].n_sent;
	choose_passes(sim, n_sent);
	if (limit && n_sent * sim->n_passes > limit)
		return base_error(WREATH_EUNSUP,
				  "%s of %d ranks sends %" PRIu64 " messages "
				  "in %" PRIu64 " passes, more than the limit "
				  "of %" PRIu64,
				  sched_algo_name(sim->shape->algo),
				  sim->shape->n_ranks, n_sent * sim->n_passes,
				  sim->n_passes, limit);
	return 0;
}

static int allocate(struct sim *sim)
{
	size_t n_lanes = (size_t)sim->n_ranks * sim->n_lanes;
	uint32_t r;
	int err;

	sim->ranks = base_alloc(sim->n_ranks, sizeof(*sim->ranks));
	if (!sim->ranks)
		return WREATH_ENOMEM;
	for (r = 0; r < sim->n_ranks; r++) {
		struct sim_rank *rank = &sim->ranks[r];

		rank->class = &sim->classes[r % sim->n_classes];
		rank->rx = sim->n_rx;
		rank->tx = sim->n_tx;
		rank->traced = SIM_NONE;
		rank->before = SIM_NONE;
		sim->n_rx += rank->class->rx.n;
		sim->n_tx += rank->class->tx.n;
		if (sim->n_rx > QUEUES_MAX || sim->n_tx > QUEUES_MAX)
			break;
	}
	err = check_size(sim);
	if (err)
		return err;
	sim->lanes = base_alloc(n_lanes, sizeof(*sim->lanes));
	sim->txs = base_alloc(sim->n_tx + 1, sizeof(*sim->txs));
	sim->rxs = base_alloc(sim->n_rx + 1, sizeof(*sim->rxs));
	sim->paths = base_alloc((size_t)sim->n_tx + 1,
				SIM_PATH_MAX * sizeof(*sim->paths));
	if (!sim->lanes || !sim->txs || !sim->rxs || !sim->paths)
		return WREATH_ENOMEM;
	if (sim->args->trace_max) {
		sim->sent_traced = base_alloc(
			((size_t)sim->n_rx + 1) * sim->cut.window,
			sizeof(*sim->sent_traced));
		if (!sim->sent_traced)
			return WREATH_ENOMEM;
		sim->is_traced = true;
	}
	return 0;
}

/* The way of a queue's messages, and of the credit for them. */
static int find_paths(struct sim *sim, uint32_t rank, uint32_t peer,
		      uint32_t channel, struct sim_tx *tx)
{
	uint32_t back[SIM_PATH_MAX];
	struct sim_rx *rx = &sim->rxs[tx->rx];
	int i, n = sim_net_path(&sim->net, (int)rank, (int)peer, (int)channel,
				&sim->paths[tx->path]);

	if (n < 0)
		return n;
	tx->n_links = (uint8_t)n;
	n = sim_net_path(&sim->net, (int)peer, (int)rank, (int)channel, back);
	if (n < 0)
		return n;
	rx->back_link = back[0];
	for (i = 0; i < n; i++)
		rx->back_ps += sim->net.links[back[i]].latency_ps;
	return 0;
}

static int join(struct sim *sim, uint32_t r, uint32_t i)
{
	uint32_t n = (uint32_t)sim->shape->n_ranks;
	const struct sim_class *class = sim->ranks[r].class;
	struct sim_key key = class->tx.keys[i];
	uint32_t peer = (r + key.ahead) % n;
	const struct sim_rank *other = &sim->ranks[peer % sim->n_ranks];
	struct sim_key back = {n - key.ahead, key.lane};
	uint32_t at = sim_keys_find(&other->class->rx, back);
	struct sim_tx *tx = &sim->txs[sim->ranks[r].tx + i];
	int err;

	if (at == SIM_NONE)
		return base_error(WREATH_EINVAL,
				  "rank %u sends to lane %u of rank %u, which "
				  "receives nothing from it", r, key.lane,
				  peer);
	tx->rx = other->rx + at;
	tx->lane = r * sim->n_lanes + class->tx_from[i];
	tx->path = (sim->ranks[r].tx + i) * SIM_PATH_MAX;
	sim->rxs[tx->rx].tx = sim->ranks[r].tx + i;
	sim->rxs[tx->rx].lane = peer % sim->n_ranks * sim->n_lanes + key.lane;
	err = find_paths(sim, r, peer, class->lanes[key.lane].channel, tx);
	if (err)
		return err;
	if (sim->cut.block_bytes >= SCHED_SIM_PLACE_MIN &&
	    class->tx_is_granted[i]) {
		tx->n_out = sim->cut.window;
		sim_push(sim, sim->fabric->overhead_ps +
				      sim->rxs[tx->rx].back_ps,
			 SIM_GRANT, sim->ranks[r].tx + i, SIM_NONE);
	}
	return 0;
}

/*
 * Where all messages that come by a link leave by one other, they come in the
 * order in which they leave, and both can be worked out at once.
 */
static int find_straight(struct sim *sim)
{
	uint32_t *feeder;
	uint32_t i;

	feeder = base_alloc(sim->net.n_links + 1u, sizeof(*feeder));
	if (!feeder)
		return WREATH_ENOMEM;
	for (i = 0; i < sim->n_tx; i++) {
		const struct sim_tx *tx = &sim->txs[i];
		const uint32_t *path = &sim->paths[tx->path];
		uint32_t *from = &feeder[path[tx->n_links - 1]];
		uint32_t before = path[tx->n_links - 2] + 1;

		if (tx->n_links > 2 || (*from && *from != before))
			*from = SIM_NONE;
		else if (*from != SIM_NONE)
			*from = before;
	}
	for (i = 0; i < sim->n_tx; i++) {
		struct sim_tx *tx = &sim->txs[i];
		uint32_t last = sim->paths[tx->path + tx->n_links - 1u];

		tx->is_straight = tx->n_links == 2 &&
				  feeder[last] != SIM_NONE;
	}
	base_free(feeder);
	return 0;
}

static void start_lanes(struct sim *sim)
{
	uint32_t i;

	for (i = 0; i < sim->n_ranks * sim->n_lanes; i++) {
		const struct sim_class *class =
			sim->ranks[i / sim->n_lanes].class;

		if (!class->lanes[i % sim->n_lanes].n_steps)
			sim->lanes[i].is_done = true;
		else
			sim->n_undone++;
	}
}

int sim_build(struct sim *sim)
{
	uint32_t r, i;
	int err = choose_classes(sim);

	if (err)
		return err;
	sim->n_lanes = sim->classes[0].n_lanes;
	sim->batch = sim->cut.window > 1 ? sim->cut.window / 2 : 1;
	err = allocate(sim);
	if (err)
		return err;
	err = sim_net_init(&sim->net, sim->fabric, sim->shape,
			   sim->n_ranks < (uint32_t)sim->shape->n_ranks
				   ? sim_net_unit(sim->fabric) : 0);
	if (err)
		return err;
	for (r = 0; r < sim->n_ranks; r++) {
		for (i = 0; i < sim->ranks[r].class->tx.n; i++) {
			err = join(sim, r, i);
			if (err)
				return err;
		}
	}
	start_lanes(sim);
	return find_straight(sim);
}
