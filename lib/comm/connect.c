/* SPDX-License-Identifier: MIT */
/* How ranks connect: all of them for a plan, or two for a message. */
#include <string.h>

#include "comm/inner.h"

static bool is_needed(const bool *needed, int n_channels, int peer)
{
	int c;

	for (c = 0; c < n_channels; c++)
		if (needed[peer * NET_CHANNELS_MAX + c])
			return true;
	return false;
}

int comm_compare(struct wreath_comm *comm, const struct net_sign *sign)
{
	struct net_sign *all =
		base_alloc((size_t)comm->n_ranks, sizeof(*all));
	char a[128], b[128];
	uint64_t sum = 0;
	int err, i;

	if (!all)
		return WREATH_ENOMEM;
	err = boot_all_gather(comm->boot, sign, sizeof(*sign), all);
	for (i = 0; i < comm->n_ranks && !err; i++) {
		/* At the end it is for each rank to tell. */
		if (sign->collective == COMM_END) {
			sum += all[i].count;
			all[i].count = sign->count;
		}
		if (!memcmp(&all[i], sign, sizeof(*sign)))
			continue;
		exec_sign_text(sign, a, sizeof(a));
		exec_sign_text(&all[i], b, sizeof(b));
		err = base_error(WREATH_EMISMATCH,
				 "operation %llu is %s on %s, but operation "
				 "%llu is %s on %s; every rank must make the "
				 "same calls in the same order",
				 (unsigned long long)sign->seq, a,
				 comm->names[comm->rank],
				 (unsigned long long)all[i].seq, b,
				 comm->names[i]);
	}
	comm->n_untaken = sum;
	base_free(all);
	return err;
}

int comm_offer(struct wreath_comm *comm, const bool *needed, int peer)
{
	struct net_record records[NET_CHANNELS_MAX];
	int n = comm->net->n_channels;
	int c, err;

	memset(records, 0, sizeof(records));
	for (c = 0; c < n; c++) {
		if (!needed[c])
			continue;
		err = net_conn_new(comm->net, peer, c, &records[c]);
		if (err)
			return err;
	}
	return boot_send(comm->boot, peer, records,
			 (size_t)n * sizeof(*records));
}

int comm_take_offer(struct wreath_comm *comm, const bool *needed, int peer,
		    const struct net_record *records)
{
	int err = 0;
	int c;

	for (c = 0; c < comm->net->n_channels && !err; c++)
		if (needed[c])
			err = net_conn_ready(comm->net, peer, c, &records[c]);
	return err;
}

/* WREATH_EAGAIN: not by this pair of ports. */
static int accept_offer(struct wreath_comm *comm, const bool *needed, int peer)
{
	struct net_record records[NET_CHANNELS_MAX];
	int err = boot_recv(comm->boot, peer, records,
			    (size_t)comm->net->n_channels * sizeof(*records));

	return err ? err : comm_take_offer(comm, needed, peer, records);
}

/* Connections to be made, and how far they have come. */
struct connecting {
	const bool *needed;
	int *peers; /* those that are not connected */
	int n_peers;
	struct net_verdict *verdicts; /* [n_ranks]; NULL while all is well */
};

static const bool *needed_of(const struct connecting *all, int peer)
{
	return all->needed + peer * NET_CHANNELS_MAX;
}

static void connecting_release(struct connecting *all)
{
	base_free(all->verdicts);
	base_free(all->peers);
}

static int connecting_init(struct connecting *all, struct wreath_comm *comm,
			   const bool *needed)
{
	int i;

	memset(all, 0, sizeof(*all));
	all->needed = needed;
	all->peers = base_alloc((size_t)comm->n_ranks, sizeof(*all->peers));
	for (i = 0; i < comm->n_ranks && all->peers; i++)
		if (is_needed(needed, comm->net->n_channels, i))
			all->peers[all->n_peers++] = i;
	return all->peers ? 0 : WREATH_ENOMEM;
}

/* Keep what @err says of the way to @peer, to be told and compared. */
static int note_failure(struct connecting *all, struct wreath_comm *comm,
			int peer, int err)
{
	if (!all->verdicts)
		all->verdicts = base_alloc((size_t)comm->n_ranks,
					   sizeof(*all->verdicts));
	if (!all->verdicts)
		return WREATH_ENOMEM;
	net_verdict(comm->net, peer, err, &all->verdicts[peer]);
	return 0;
}

/* One try with every peer that is left. */
static int try_peers(struct connecting *all, struct wreath_comm *comm)
{
	int err = 0;
	int i;

	base_free(all->verdicts);
	all->verdicts = NULL;
	for (i = 0; i < all->n_peers && !err; i++)
		err = comm_offer(comm, needed_of(all, all->peers[i]),
				 all->peers[i]);
	for (i = 0; i < all->n_peers && !err; i++) {
		err = accept_offer(comm, needed_of(all, all->peers[i]),
				   all->peers[i]);
		if (err == WREATH_EAGAIN)
			err = note_failure(all, comm, all->peers[i], err);
	}
	return err;
}

/*
 * A pair of ports did not work somewhere: each two ranks that are connecting
 * tell each other, and go on to their next pair where it was theirs.
 */
static int compare_verdicts(struct connecting *all, struct wreath_comm *comm)
{
	const struct net_verdict none = {.error = 0};
	int n_left = 0;
	int err = 0;
	int i;

	for (i = 0; i < all->n_peers && !err; i++)
		err = boot_send(comm->boot, all->peers[i],
				all->verdicts ? &all->verdicts[all->peers[i]]
					      : &none, sizeof(none));
	for (i = 0; i < all->n_peers && !err; i++) {
		int peer = all->peers[i];
		const struct net_verdict *mine =
			all->verdicts ? &all->verdicts[peer] : &none;
		struct net_verdict theirs;

		err = boot_recv(comm->boot, peer, &theirs, sizeof(theirs));
		if (err || (!mine->error && !theirs.error))
			continue;
		theirs.text[sizeof(theirs.text) - 1] = 0;
		err = net_conn_next(comm->net, peer, mine, &theirs);
		all->peers[n_left++] = peer;
	}
	all->n_peers = n_left;
	return err;
}

/* Every rank takes part in every turn, also one that is connected itself. */
static int connect_peers(struct connecting *all, struct wreath_comm *comm)
{
	char is_bad[COMM_RANKS_MAX];
	bool is_done = false;
	int err = 0;

	while (!err && !is_done) {
		char mine;
		int i;

		err = try_peers(all, comm);
		if (err)
			return err;
		mine = all->verdicts ? 1 : 0;
		/* And no message before the peer's queue pair can take it. */
		err = boot_all_gather(comm->boot, &mine, 1, is_bad);
		is_done = true;
		for (i = 0; i < comm->n_ranks && !err; i++)
			is_done &= !is_bad[i];
		if (!err && !is_done)
			err = compare_verdicts(all, comm);
	}
	return err;
}

/*
 * Shorter by an eighth than the others wait for this rank at the barrier that
 * follows: who cannot be connected shall be the first to say so.
 */
static int by_cm_timeout_ms(const struct wreath_comm *comm)
{
	int64_t ms = comm->env.value[BASE_ENV_TIMEOUT];

	if (ms > comm->env.value[BASE_ENV_JOIN_TIMEOUT])
		ms = comm->env.value[BASE_ENV_JOIN_TIMEOUT];
	return (int)(ms - ms / 8);
}

/* The pairs of ports have been found; librdmacm connects them. */
static int connect_by_cm(struct wreath_comm *comm)
{
	int err = net_connect(comm->net, by_cm_timeout_ms(comm),
			      comm_guard_stopped, comm);

	/* No message before the peer's queue pair can take it. */
	return err ? err : boot_all_gather(comm->boot, NULL, 0, NULL);
}

/*
 * Two ranks that have no call in common with the others: they tell each other
 * when they are ready.
 */
static int connect_these(struct connecting *all, struct wreath_comm *comm,
			 const int *peers, int n)
{
	int err = 0;

	while (!err && all->n_peers) {
		err = try_peers(all, comm);
		if (!err)
			err = compare_verdicts(all, comm);
	}
	if (err || !comm->env.value[BASE_ENV_CONNECT])
		return err;
	err = net_connect(comm->net, by_cm_timeout_ms(comm),
			  comm_guard_stopped, comm);
	if (err)
		return err;
	memcpy(all->peers, peers, (size_t)n * sizeof(*peers));
	all->n_peers = n;
	base_free(all->verdicts);
	all->verdicts = NULL;
	return compare_verdicts(all, comm);
}

int comm_connect_pairs(struct wreath_comm *comm, const bool *peers)
{
	size_t n = (size_t)comm->n_ranks * NET_CHANNELS_MAX;
	bool *needed = base_alloc(n, sizeof(*needed));
	struct connecting all = {0};
	int *list = NULL;
	int i, c, n_peers;
	int err = needed ? 0 : WREATH_ENOMEM;

	for (i = 0; i < comm->n_ranks && !err; i++)
		for (c = 0; c < comm->net->n_channels; c++)
			needed[i * NET_CHANNELS_MAX + c] =
				peers[i] && !net_conn(comm->net, i, c);
	if (!err)
		err = connecting_init(&all, comm, needed);
	n_peers = all.n_peers;
	if (!err)
		list = base_alloc((size_t)n_peers, sizeof(*list));
	if (!err && !list)
		err = WREATH_ENOMEM;
	if (!err) {
		memcpy(list, all.peers, (size_t)n_peers * sizeof(*list));
		err = connect_these(&all, comm, list, n_peers);
	}
	for (i = 0; i < n_peers && !err; i++)
		for (c = 0; c < comm->net->n_channels && !err; c++)
			if (needed[list[i] * NET_CHANNELS_MAX + c])
				err = net_conn_reach(comm->net, list[i], c);
	connecting_release(&all);
	base_free(list);
	base_free(needed);
	return err;
}

int comm_connect(struct wreath_comm *comm, const bool *needed,
		 const struct net_sign *sign)
{
	struct connecting all;
	/*
	 * Every rank that connects has the same call before it, or they
	 * disagree; to see that here saves them from waiting for records that
	 * never come.
	 */
	int err = comm_compare(comm, sign);
	int i;

	if (!err)
		err = connecting_init(&all, comm, needed);
	if (err)
		return err;
	err = connect_peers(&all, comm);
	connecting_release(&all);
	if (!err && comm->env.value[BASE_ENV_CONNECT])
		err = connect_by_cm(comm);
	for (i = 0; i < comm->n_ranks * NET_CHANNELS_MAX && !err; i++)
		if (needed[i])
			err = net_conn_reach(comm->net, i / NET_CHANNELS_MAX,
					     i % NET_CHANNELS_MAX);
	return err;
}

