/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "sim_class.h"

static uint32_t place(const struct sim_keys *keys, struct sim_key key)
{
	uint64_t mixed = ((uint64_t)key.lane << 32 | key.ahead) *
			 0x9e3779b97f4a7c15u;
	uint32_t at = (uint32_t)(mixed >> 32) & (keys->room - 1);

	while (keys->table[at] != SIM_NONE) {
		const struct sim_key *have = &keys->keys[keys->table[at]];

		if (have->ahead == key.ahead && have->lane == key.lane)
			break;
		at = (at + 1) & (keys->room - 1);
	}
	return at;
}

uint32_t sim_keys_find(const struct sim_keys *keys, struct sim_key key)
{
	return keys->room ? keys->table[place(keys, key)] : SIM_NONE;
}

static void keys_release(struct sim_keys *keys)
{
	base_free(keys->keys);
	base_free(keys->table);
	*keys = (struct sim_keys){0};
}

static bool keys_grow(struct sim_keys *keys)
{
	struct sim_keys to = {.n = keys->n,
			      .room = keys->room ? keys->room * 2 : 8};
	uint32_t i;

	to.keys = base_alloc(to.room / 2, sizeof(*to.keys));
	to.table = base_alloc(to.room, sizeof(*to.table));
	if (!to.keys || !to.table) {
		keys_release(&to);
		return false;
	}
	memset(to.table, 0xff, to.room * sizeof(*to.table));
	for (i = 0; i < to.n; i++) {
		to.keys[i] = keys->keys[i];
		to.table[place(&to, to.keys[i])] = i;
	}
	keys_release(keys);
	*keys = to;
	return true;
}

/* The key's number, given now if it has none; SIM_NONE: no memory. */
static uint32_t keys_add(struct sim_keys *keys, struct sim_key key)
{
	uint32_t found = sim_keys_find(keys, key);

	if (found != SIM_NONE)
		return found;
	if (keys->n == keys->room / 2 && !keys_grow(keys))
		return SIM_NONE;
	keys->keys[keys->n] = key;
	keys->table[place(keys, key)] = keys->n;
	return keys->n++;
}

/* @from[0 .. n) of the schedule's peers, as numbers of queues in the lists. */
static int take_list(struct sim_class *class, struct sim_keys *keys,
		     const struct sched *sched, uint32_t from, uint32_t n,
		     uint32_t lane)
{
	uint32_t n_ranks = (uint32_t)sched->shape.n_ranks;
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint32_t peer = sched->peers[from + i];
		struct sim_key key = {
			(peer + n_ranks - (uint32_t)sched->rank) % n_ranks,
			lane,
		};
		uint32_t queue = keys_add(keys, key);

		if (queue == SIM_NONE)
			return WREATH_ENOMEM;
		class->lists[class->n_lists++] = queue;
	}
	return 0;
}

static int take_step(struct sim_class *class, const struct sched *sched,
		     uint32_t lane, uint32_t i)
{
	const struct sched_step *from = &sched->steps[i];
	struct sim_step *to = &class->steps[i];
	uint32_t piece = from->chunk % sched->n_pieces;
	uint32_t n_each = sched->n_pieces / class->n_channels;
	uint32_t had = class->tx.n;
	int err;

	*to = (struct sim_step){
		.recv = class->n_lists,
		.n_recv = (uint16_t)from->n_recv,
		.n_send = (uint16_t)from->n_send,
		.at = piece % n_each,
		.channel = (uint8_t)(piece / n_each),
		.after_lane = (int8_t)from->after_lane,
		.after_step = from->after_step,
		.local = from->local,
		.flags = from->flags,
	};
	err = take_list(class, &class->rx, sched, from->recv, from->n_recv,
			lane);
	to->send = class->n_lists;
	if (!err)
		err = take_list(class, &class->tx, sched, from->send,
				from->n_send, from->send_lane);
	for (; !err && had < class->tx.n; had++) {
		class->tx_from[had] = lane;
		class->tx_is_granted[had] = from->flags & SCHED_SEND_FINAL;
	}
	class->n_sent += from->n_send;
	return err;
}

static int take(struct sim_class *class, const struct sched *sched)
{
	uint32_t lane, i;
	size_t n_peers = sched->n_peers ? sched->n_peers : 1;

	class->n_lanes = sched->n_lanes;
	class->n_steps = sched->n_steps;
	class->n_pieces = sched->n_pieces;
	class->n_channels = (uint32_t)sched->shape.n_channels;
	class->lanes = base_alloc(sched->n_lanes, sizeof(*class->lanes));
	class->steps = base_alloc(sched->n_steps ? sched->n_steps : 1,
				  sizeof(*class->steps));
	class->lists = base_alloc(n_peers, sizeof(*class->lists));
	class->tx_from = base_alloc(n_peers, sizeof(*class->tx_from));
	class->tx_is_granted = base_alloc(n_peers, sizeof(bool));
	if (!class->lanes || !class->steps || !class->lists ||
	    !class->tx_from || !class->tx_is_granted)
		return WREATH_ENOMEM;
	memcpy(class->lanes, sched->lanes,
	       sched->n_lanes * sizeof(*class->lanes));
	for (lane = 0; lane < sched->n_lanes; lane++) {
		const struct sched_lane *from = &sched->lanes[lane];

		for (i = from->step; i < from->step + from->n_steps; i++) {
			int err = take_step(class, sched, lane, i);

			if (err)
				return err;
		}
	}
	return 0;
}

int sim_class_make(struct sim_class *class, const struct sched_shape *shape,
		   int rank)
{
	struct sched *sched;
	int err = sched_make(shape, rank, &sched);

	*class = (struct sim_class){0};
	if (err)
		return err;
	err = take(class, sched);
	sched_free(sched);
	if (err)
		sim_class_release(class);
	return err;
}

void sim_class_release(struct sim_class *class)
{
	base_free(class->lanes);
	base_free(class->steps);
	base_free(class->lists);
	base_free(class->tx_from);
	base_free(class->tx_is_granted);
	keys_release(&class->tx);
	keys_release(&class->rx);
	*class = (struct sim_class){0};
}

static bool is_same_step(const struct sim_step *a, const struct sim_step *b)
{
	return a->recv == b->recv && a->send == b->send &&
	       a->n_recv == b->n_recv && a->n_send == b->n_send &&
	       a->after_lane == b->after_lane &&
	       a->after_step == b->after_step && a->channel == b->channel &&
	       a->local == b->local && a->flags == b->flags;
}

static bool is_same_keys(const struct sim_keys *a, const struct sim_keys *b)
{
	return a->n == b->n &&
	       (!a->n || !memcmp(a->keys, b->keys, a->n * sizeof(*a->keys)));
}

bool sim_class_is_same(const struct sim_class *a, const struct sim_class *b)
{
	uint32_t i;

	if (a->n_lanes != b->n_lanes || a->n_steps != b->n_steps ||
	    a->n_lists != b->n_lists || a->n_pieces != b->n_pieces)
		return false;
	if (memcmp(a->lanes, b->lanes, a->n_lanes * sizeof(*a->lanes)) ||
	    memcmp(a->lists, b->lists, a->n_lists * sizeof(*a->lists)) ||
	    !is_same_keys(&a->tx, &b->tx) || !is_same_keys(&a->rx, &b->rx))
		return false;
	for (i = 0; i < a->n_steps; i++)
		if (!is_same_step(&a->steps[i], &b->steps[i]))
			return false;
	return true;
}
