/* SPDX-License-Identifier: MIT */
/*
 * Pairs of ranks that connect while messages with others go on.  A rank offers
 * to all its peers at once; what a peer answers is taken when it comes, so that
 * one which is in another call yet keeps nobody waiting.
 *
 * What two ranks tell each other is the same as where they wait for it: their
 * records, then a verdict each, and where one of them is bad, the records of
 * their next pair of ports.  What may take a moment, up to a second where the
 * kernel looks for a neighbour, is to ready a queue pair.
 */
#include <string.h>

#include "comm/inner.h"

struct pair {
	int peer;
	bool has_records; /* the peer's, of this try; it has our verdict */
	bool needed[NET_CHANNELS_MAX];
	struct net_verdict mine;
};

struct comm_pairs {
	struct wreath_comm *comm;
	int n; /* that are left */
	struct pair pairs[];
};

static int offer(struct comm_pairs *all, struct pair *pair)
{
	pair->has_records = false;
	memset(&pair->mine, 0, sizeof(pair->mine));
	return comm_offer(all->comm, pair->needed, pair->peer);
}

int comm_pairs_new(struct wreath_comm *comm, const bool *peers,
		   struct comm_pairs **out)
{
	struct comm_pairs *all;
	size_t n = 0;
	int err = 0;
	int i, c;

	for (i = 0; i < comm->n_ranks; i++)
		n += peers[i];
	all = base_alloc(1, sizeof(*all) + n * sizeof(all->pairs[0]));
	if (!all)
		return WREATH_ENOMEM;
	all->comm = comm;
	for (i = 0; i < comm->n_ranks; i++) {
		if (!peers[i])
			continue;
		for (c = 0; c < comm->net->n_channels; c++)
			all->pairs[all->n].needed[c] =
				!net_conn(comm->net, i, c);
		all->pairs[all->n++].peer = i;
	}
	for (i = 0; i < all->n && !err; i++)
		err = offer(all, &all->pairs[i]);
	if (err) {
		comm_pairs_free(all);
		return err;
	}
	*out = all;
	return 0;
}

/* WREATH_EAGAIN: nothing has come. */
static int take_records(struct comm_pairs *all, struct pair *pair)
{
	struct net_record records[NET_CHANNELS_MAX];
	struct wreath_comm *comm = all->comm;
	int err = boot_recv_now(comm->boot, pair->peer, records,
				(size_t)comm->net->n_channels *
					sizeof(*records));

	if (err)
		return err;
	pair->has_records = true;
	err = comm_take_offer(comm, pair->needed, pair->peer, records);
	if (err == WREATH_EAGAIN) {
		net_verdict(comm->net, pair->peer, err, &pair->mine);
		err = 0;
	}
	if (!err)
		err = boot_send(comm->boot, pair->peer, &pair->mine,
				sizeof(pair->mine));
	return err;
}

static int reach(const struct comm_pairs *all, const struct pair *pair)
{
	struct net *net = all->comm->net;
	int err = 0;
	int c;

	for (c = 0; c < net->n_channels && !err; c++)
		if (pair->needed[c])
			err = net_conn_reach(net, pair->peer, c);
	return err;
}

/* Both are ready, or both go on to their next pair of ports. */
static int take_verdict(struct comm_pairs *all, struct pair *pair,
			bool *is_done)
{
	struct wreath_comm *comm = all->comm;
	struct net_verdict theirs;
	int err = boot_recv_now(comm->boot, pair->peer, &theirs,
				sizeof(theirs));

	if (err)
		return err;
	*is_done = !pair->mine.error && !theirs.error;
	if (*is_done)
		return reach(all, pair);
	theirs.text[sizeof(theirs.text) - 1] = 0;
	err = net_conn_next(comm->net, pair->peer, &pair->mine, &theirs);
	return err ? err : offer(all, pair);
}

/* All that has come of the pair's peer: the number of steps, or an error. */
static int pair_step(struct comm_pairs *all, struct pair *pair, bool *is_done)
{
	int n = 0;
	int err = 0;

	*is_done = false;
	while (!err && !*is_done) {
		err = pair->has_records ? take_verdict(all, pair, is_done)
					: take_records(all, pair);
		n += !err;
	}
	return err && err != WREATH_EAGAIN ? err : n;
}

int comm_pairs_step(void *pairs)
{
	struct comm_pairs *all = pairs;
	int n_steps = 0;
	int i = 0;

	while (i < all->n) {
		bool is_done;
		int n = pair_step(all, &all->pairs[i], &is_done);

		if (n < 0)
			return n;
		n_steps += n;
		if (is_done)
			all->pairs[i] = all->pairs[--all->n];
		else
			i++;
	}
	return n_steps;
}

void comm_pairs_free(struct comm_pairs *pairs)
{
	base_free(pairs);
}
