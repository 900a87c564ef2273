/* SPDX-License-Identifier: MIT */
/* How a communicator ends, and other calls that are no collective. */
#include "comm/inner.h"

int comm_meet(struct wreath_comm *comm, uint64_t ticket, uint32_t what)
{
	struct net_sign sign = {.collective = what};
	int err;

	comm_await_turn(comm, ticket);
	sign.seq = comm_next_seq(comm);
	if (what == COMM_END)
		sign.count = comm_exchange_sum(comm);
	err = comm_error(comm);
	if (err || !comm->boot)
		return err;
	net_sign_post(comm->net, &sign);
	err = comm_compare(comm, &sign);
	return err ? comm_fail(comm, err) : 0;
}

static int finalize(struct wreath_comm *comm)
{
	uint64_t ticket = comm_ticket(comm);
	int err = comm_meet(comm, ticket, COMM_END);

	/* All ranks conclude alike. */
	if (!err && comm->boot && comm->n_untaken) {
		err = comm_exchange_end(comm);
		if (err)
			err = comm_fail(comm, err);
	}
	comm_pass_turn(comm, ticket);
	return err;
}

int wreath_comm_finalize(struct wreath_comm *comm)
{
	int err = comm_check(comm, "wreath_comm_finalize");

	if (!err)
		err = comm_group_check(comm, "wreath_comm_finalize");
	if (err || comm->is_final)
		return err;
	/* It has no place in the order yet. */
	if (comm_is_joining(comm))
		return comm_error(comm);
	err = finalize(comm);
	comm->is_final = !err;
	return err;
}

int wreath_comm_destroy(struct wreath_comm *comm)
{
	int err, later = 0;

	if (!comm)
		return 0;
	err = comm_check(comm, "wreath_comm_destroy");
	if (err)
		return err;
	comm_join_end(comm);
	err = comm_group_check(comm, "wreath_comm_destroy");
	if (err)
		comm_group_forget(comm);
	if (!comm_error(comm))
		later = wreath_comm_finalize(comm);
	else
		/* Nobody may be inside when the memory goes. */
		comm_drain(comm);
	comm_free(comm);
	return later ? later : err;
}
