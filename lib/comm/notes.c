/* SPDX-License-Identifier: MIT */
/* What net needs of boot: a way to the peers while a connection is broken. */
#include "comm/inner.h"

static int send_note(void *arg, int peer, const void *note, size_t bytes)
{
	struct wreath_comm *comm = arg;

	return boot_note_send(comm->boot, peer, note, bytes);
}

static bool take_note(void *arg, int *peer, void *note, size_t size,
		      size_t *bytes)
{
	struct wreath_comm *comm = arg;

	return boot_note_take(comm->boot, peer, note, size, bytes);
}

static int send_ask(void *arg, int peer, const void *note, size_t bytes)
{
	struct wreath_comm *comm = arg;

	return boot_ask(comm->boot, peer, note, bytes);
}

size_t comm_answer(void *arg, const void *ask, size_t bytes, void *reply)
{
	return net_answer(arg, ask, bytes, reply);
}

int comm_join_stopped(void *arg)
{
	const struct wreath_comm *comm = arg;

	return comm->stop ? comm->stop->stopped(comm->stop->arg) : 0;
}

int comm_while_waiting(void *arg)
{
	struct wreath_comm *comm = arg;
	int err = comm_join_stopped(comm);

	if (err || !comm->net)
		return err;
	err = net_poll(comm->net);
	if (!err)
		err = net_fail_heard(comm->net);
	return err ? err : net_watch(comm->net);
}

struct net_notes comm_notes(struct wreath_comm *comm)
{
	const struct net_notes notes = {
		.send = send_note,
		.ask = send_ask,
		.take = take_note,
		.arg = comm,
	};

	return notes;
}
