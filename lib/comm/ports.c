/* SPDX-License-Identifier: MIT */
/* The ports of all ranks: found, told, and agreed upon. */
#define _GNU_SOURCE
#include "comm/inner.h"
#include "soft/soft.h"

static int open_net(struct wreath_comm *comm)
{
	const struct net_notes notes = comm_notes(comm);
	struct net_args args = {
		.env = &comm->env,
		.all_local = comm->all_local,
		.all_ports = comm->all_ports,
		.crowded = comm->crowded,
		.max_rails = comm->max_rails,
		.rank = comm->rank,
		.n_ranks = comm->n_ranks,
		.names = comm->names,
		.notes = &notes,
	};
	int err = soft_table(&args.soft);

	if (err && err != WREATH_EUNSUP)
		return err;
	/* libibverbs is loaded where it may be needed, not in every program. */
	if (err || !comm->all_local || comm->all_ports) {
		err = verbs_ibv(&args.ibv);
		if (err && err != WREATH_EUNSUP)
			return err;
	}
	err = net_open(&args, &comm->net);
	if (!err)
		boot_answer_by(comm->boot, comm_answer, comm->net);
	return err;
}

_Static_assert(NET_OFFER_MAX <= BOOT_RECORD_MAX, "an offer is one record");

/*
 * Lengths first, since offers of one soft port are a thirtieth of the longest.
 */
static int tell_ports(struct wreath_comm *comm)
{
	unsigned char mine[NET_OFFER_MAX] = {0};
	size_t n = (size_t)comm->n_ranks;
	uint32_t bytes = (uint32_t)net_offer(comm->net, mine);
	uint32_t *lengths = base_alloc(n, sizeof(*lengths));
	void *offers = NULL;
	size_t i;
	int err = lengths ? 0 : WREATH_ENOMEM;

	if (!err)
		err = boot_all_gather(comm->boot, &bytes, sizeof(bytes),
				      lengths);
	for (i = 0; i < n && !err; i++)
		if (lengths[i] > bytes && lengths[i] <= NET_OFFER_MAX)
			bytes = lengths[i];
	if (!err)
		offers = base_alloc(n, bytes);
	if (!err && !offers)
		err = WREATH_ENOMEM;
	if (!err)
		err = boot_all_gather(comm->boot, mine, bytes, offers);
	if (!err)
		err = net_agree(comm->net, offers, bytes, comm->hosts,
				comm->nodes);
	else
		base_free(offers);
	base_free(lengths);
	return err;
}

/* Both of two ranks have agreed on their ports, so both conclude alike. */
static unsigned int settings(const struct wreath_comm *comm)
{
	const struct net *net = comm->net;
	bool is_soft = false;
	int i;

	for (i = 0; i < net->n_started; i++)
		is_soft |= net->started[i]->is_soft;
	return (comm->crowded ? SCHED_CROWDED : 0u) |
	       (is_soft ? 0u : SCHED_APART);
}

/*
 * Who has no way to a peer fails them all, before anyone goes on.  And do all
 * ranks reach the memory of all, by ports that need not be measured?
 */
static int agree_plain(struct wreath_comm *comm)
{
	char mine = comm->all_local && net_maps_all(comm->net);
	char all[COMM_RANKS_MAX];
	int err = boot_all_gather(comm->boot, &mine, 1, all);
	int i;

	comm->is_plain = !err;
	for (i = 0; i < comm->n_ranks && !err; i++)
		comm->is_plain &= all[i] != 0;
	return err;
}

int comm_ports_open(struct wreath_comm *comm)
{
	int err = open_net(comm);

	if (!err)
		err = tell_ports(comm);
	if (!err)
		comm->settings = settings(comm);
	return err ? err : agree_plain(comm);
}
