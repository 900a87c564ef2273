/* SPDX-License-Identifier: MIT */
/*
 * Communicators made out of another one.  The ranks of each group join like
 * those of any communicator; what the parent saves them is the way by which
 * the id comes.
 */
#include <stdio.h>
#include <string.h>

#include "comm/inner.h"

/* What a rank says of itself. */
struct entry {
	int32_t color, key;
};

/* From the first rank of a group to the others. */
struct invitation {
	int32_t error; /* it could make no id; @text says why */
	struct wreath_unique_id id;
	char text[512];
};

struct group {
	int n_ranks;
	int rank;   /* of this one, in the group */
	int leader; /* in the parent: the group's rank 0 */
};

static bool is_before(const struct entry *all, int a, int b)
{
	if (all[a].key != all[b].key)
		return all[a].key < all[b].key;
	return a < b;
}

static void find_group(const struct wreath_comm *parent,
		       const struct entry *all, struct group *group)
{
	int me = parent->rank;
	int i;

	memset(group, 0, sizeof(*group));
	group->leader = me;
	for (i = 0; i < parent->n_ranks; i++) {
		if (all[i].color != all[me].color)
			continue;
		group->n_ranks++;
		group->rank += is_before(all, i, me);
		if (is_before(all, i, group->leader))
			group->leader = i;
	}
}

/* The leader's: its own failure to make an id is told, too. */
static int invite(struct wreath_comm *parent, const struct entry *all,
		  struct invitation *note)
{
	int me = parent->rank;
	int err = 0;
	int i;

	note->error = boot_root_start_beside(
		parent->boot, parent->env.value[BASE_ENV_JOIN_TIMEOUT],
		&note->id);
	if (note->error)
		snprintf(note->text, sizeof(note->text), "%.500s",
			 base_error_text());
	for (i = 0; i < parent->n_ranks && !err; i++)
		if (i != me && all[i].color == all[me].color)
			err = boot_send(parent->boot, i, note, sizeof(*note));
	return err;
}

/* Another rank's words are no more than that: codes are checked. */
static int invited(const struct wreath_comm *parent,
		   const struct group *group, struct invitation *note)
{
	if (!note->error || group->leader == parent->rank)
		return note->error;
	note->text[sizeof(note->text) - 1] = 0;
	return base_error(note->error < 0 && note->error > -100
				  ? note->error : WREATH_EPEER,
			  "%s could make no communicator: %s",
			  parent->names[group->leader], note->text);
}

/*
 * While this rank joins the child, the parent must not die unnoticed, and its
 * connections may need mending; the parent's turn is this call's.
 */
static int parent_stopped(void *arg)
{
	struct wreath_comm *parent = arg;
	int err = comm_guard_stopped(parent);

	if (err)
		return err;
	err = comm_while_waiting(parent);
	return err ? comm_fail(parent, err) : 0;
}

static int make_child(struct wreath_comm *parent, const struct entry *all,
		      struct wreath_comm **out)
{
	const struct comm_stop stop = {
		.stopped = parent_stopped,
		.arg = parent,
	};
	struct invitation note = {.error = 0};
	struct group group;
	int err = 0;

	find_group(parent, all, &group);
	if (group.n_ranks == 1)
		return comm_new(NULL, 0, 1, &parent->env, NULL, out);
	if (group.leader == parent->rank)
		err = invite(parent, all, &note);
	else
		err = boot_recv(parent->boot, group.leader, &note,
				sizeof(note));
	if (err)
		return comm_fail(parent, err);
	err = invited(parent, &group, &note);
	return err ? err : comm_new(&note.id, group.rank, group.n_ranks,
				    &parent->env, &stop, out);
}

static int split(struct wreath_comm *parent, const struct entry *mine,
		 struct wreath_comm **out)
{
	struct entry *all =
		base_alloc((size_t)parent->n_ranks, sizeof(*all));
	int err;

	/* The others wait for this rank: without memory it is the end. */
	if (!all)
		return comm_fail(parent, WREATH_ENOMEM);
	all[0] = *mine;
	if (parent->boot)
		err = boot_all_gather(parent->boot, mine, sizeof(*mine), all);
	else
		err = 0;
	if (err)
		err = comm_fail(parent, err);
	else if (mine->color == WREATH_COLOR_NONE)
		*out = NULL;
	else
		err = make_child(parent, all, out);
	base_free(all);
	return err;
}

/* Its place in the order is that of a call like any other. */
static int call(struct wreath_comm *parent, enum comm_call what,
		const struct entry *mine, struct wreath_comm **out)
{
	uint64_t ticket = comm_ticket(parent);
	int err = comm_meet(parent, ticket, what);

	if (!err)
		err = split(parent, mine, out);
	comm_pass_turn(parent, ticket);
	return err;
}

static int check_parent(struct wreath_comm *comm, struct wreath_comm **out,
		      const char *function)
{
	int err = comm_check(comm, function);

	if (err)
		return err;
	if (!out)
		return base_error(WREATH_EINVAL, "%s: out is NULL", function);
	err = comm_error(comm);
	if (!err && comm->is_final)
		err = base_error(WREATH_EINVAL,
				 "%s: the communicator is finalized", function);
	return err;
}

int wreath_comm_split(struct wreath_comm *comm, int color, int key,
		      struct wreath_comm **out)
{
	const struct entry mine = {.color = color, .key = key};
	int err = check_parent(comm, out, "wreath_comm_split");

	if (!err && color < WREATH_COLOR_NONE)
		err = base_error(WREATH_EINVAL,
				 "wreath_comm_split: color %d is negative; it "
				 "may be 0 or more, or WREATH_COLOR_NONE",
				 color);
	return err ? err : call(comm, COMM_SPLIT, &mine, out);
}

int wreath_comm_duplicate(struct wreath_comm *comm, struct wreath_comm **out)
{
	int err = check_parent(comm, out, "wreath_comm_duplicate");
	struct entry mine = {.color = 0};

	if (err)
		return err;
	mine.key = comm->rank;
	return call(comm, COMM_DUPLICATE, &mine, out);
}
