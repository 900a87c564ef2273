/* SPDX-License-Identifier: MIT */
/*
 * Operations that need no slot, or fewer: peers write final bytes where they
 * shall be, and read raw input where it is.
 */
#include "exec/inner.h"

bool exec_is_mutual(const struct exec_plan *plan, const struct net_conn *conn)
{
	uint32_t i;

	for (i = 0; i < plan->n_grants_from; i++)
		if (plan->grants_from[i] == conn)
			return true;
	return plan->is_parted;
}

void exec_drop_unreachable(const struct exec_plan *plan, struct net_conn *conn,
			   uint32_t kinds)
{
	if (!plan->args->gpu || (conn->place_told & NET_PLACE_GPU_OP))
		return;
	if (kinds & conn->granted & NET_PLACE_OUTPUT &&
	    conn->granted & NET_PLACE_OUTPUT_GPU)
		conn->granted &= ~(uint32_t)NET_PLACE_OUTPUT;
	if (kinds & conn->granted & NET_PLACE_INPUT &&
	    conn->granted & NET_PLACE_INPUT_GPU)
		conn->granted &= ~(uint32_t)NET_PLACE_INPUT;
}

bool exec_has_places(struct exec_plan *plan)
{
	while (plan->n_missing) {
		struct net_conn *conn = plan->missing[plan->n_missing - 1];

		if (!net_place_take(conn, plan->signature))
			return false;
		exec_drop_unreachable(plan, conn,
				      NET_PLACE_OUTPUT | NET_PLACE_INPUT);
		plan->n_missing--;
	}
	return true;
}

/*
 * Is a block that is this long worth a grant?  Where only two ranks know its
 * length the first pass goes by slots, so that its messages show whether they
 * agree.
 */
static bool is_worth(const struct exec_plan *plan, size_t bytes)
{
	return bytes != EXEC_ABSENT &&
	       bytes >= (plan->is_private ? plan->pass_bytes + 1
					  : EXEC_PLACE_MIN);
}

/* The block of @blocks that @rank has, or is to have, of a paired operation. */
static uint32_t own_block(const struct exec_plan *plan,
			  enum sched_collective scattered, int rank)
{
	/* Where each rank has one block only, that is its own. */
	return plan->sched->shape.collective == scattered
		       ? (uint32_t)plan->net->rank : (uint32_t)rank;
}

/* Is all of it memory that stays, so that it may be granted? */
static bool is_region(const struct exec_blocks *blocks, const void *ptr,
		      size_t bytes)
{
	struct mem_region region;

	return blocks->where == EXEC_GPU
		       ? mem_gpu_region(ptr, bytes, &region)
		       : mem_find(ptr, bytes, &region);
}

/*
 * Of a paired operation: the block that is for @peer, or from it.  Whether it
 * is granted is decided by the whole, so that everyone is told the same.
 */
static void grant_block(const struct exec_plan *plan, int peer,
			struct net_granting *what)
{
	const struct exec_args *args = plan->args;
	uint32_t out = own_block(plan, SCHED_SCATTER, peer);
	uint32_t in = own_block(plan, SCHED_GATHER, peer);

	if (!is_region(&args->out, what->output, what->output_bytes) ||
	    !is_worth(plan, exec_block_bytes(&args->out, out)))
		what->kinds &= ~(uint32_t)NET_PLACE_OUTPUT;
	if (!is_region(&args->in, what->input, what->input_bytes) ||
	    !is_worth(plan, exec_block_bytes(&args->in, in)))
		what->kinds &= ~(uint32_t)NET_PLACE_INPUT;
	if (what->kinds & NET_PLACE_OUTPUT) {
		what->output = exec_at(&args->out, out, 0);
		what->output_bytes = exec_block_bytes(&args->out, out);
	}
	if (what->kinds & NET_PLACE_INPUT) {
		what->input = exec_at(&args->in, in, 0);
		what->input_bytes = exec_block_bytes(&args->in, in);
	}
}

/* What is granted over @conn: all, where ranks find their way in it. */
static struct net_granting granting(const struct exec_plan *plan,
				    const struct net_conn *conn)
{
	const struct exec_args *args = plan->args;
	struct net_granting what = {
		.output = args->out_base,
		.input = args->in_base,
		.output_bytes = args->out_bytes,
		.input_bytes = args->in_bytes,
		.kinds = plan->grant_kinds,
	};

	if (args->gpu) {
		if (args->out.where == EXEC_GPU)
			what.output_where = &plan->out_where;
		if (args->in.where == EXEC_GPU)
			what.input_where = &plan->in_where;
		what.is_mutual = plan->reading == EXEC_READ_NONE
					 ? exec_is_mutual(plan, conn)
					 : plan->is_mutual;
		/* Others than the root have no say in it. */
		if (plan->reading == EXEC_READ_ROOT && what.input_where)
			what.kinds &= ~(uint32_t)NET_PLACE_INPUT;
	}
	if (!args->out_base)
		what.kinds &= ~(uint32_t)NET_PLACE_OUTPUT;
	/* Nobody else may read what is still to be multiplied. */
	if (!args->in_base || args->factor)
		what.kinds &= ~(uint32_t)NET_PLACE_INPUT;
	if (plan->is_paired)
		grant_block(plan, conn->peer, &what);
	return what;
}

/*
 * Do this rank and @peer grant each other places?  Where only the two know
 * the lengths of their blocks, one block that is worth it makes them do so,
 * whichever way it goes: both conclude alike.
 */
static bool do_grant(const struct exec_plan *plan, int peer)
{
	const struct exec_args *args = plan->args;
	uint32_t in = own_block(plan, SCHED_GATHER, peer);
	uint32_t out = own_block(plan, SCHED_SCATTER, peer);

	return !plan->is_private ||
	       is_worth(plan, exec_block_bytes(&args->in, in)) ||
	       is_worth(plan, exec_block_bytes(&args->out, out));
}

static int grant(struct exec_plan *plan)
{
	uint32_t i;
	int err;

	for (i = 0; i < plan->n_awaits; i++)
		net_lend_nothing(plan->awaits[i]);
	for (i = 0; i < plan->n_grants_to; i++) {
		struct net_conn *conn = plan->grants_to[i];
		struct net_granting what;

		conn->granted = 0;
		if (!do_grant(plan, conn->peer))
			continue;
		what = granting(plan, conn);
		err = net_place_grant(conn, &what, plan->signature);
		if (err)
			return err;
	}
	plan->n_missing = 0;
	/* Taken from the end: in the order of the list. */
	for (i = plan->n_grants_from; i > 0; i--) {
		struct net_conn *conn = plan->grants_from[i - 1];

		if (do_grant(plan, conn->peer))
			plan->missing[plan->n_missing++] = conn;
	}
	return 0;
}

static int hear_grants(struct exec_plan *plan)
{
	struct exec_wait wait;

	exec_wait_reset(&wait);
	while (!exec_has_places(plan)) {
		int err;

		plan->lanes[0].waits_for =
			&plan->missing[plan->n_missing - 1]->lanes[0];
		err = exec_wait(plan, &wait);
		if (err)
			return err;
	}
	return 0;
}

int exec_not_mapped(const struct exec_plan *plan, const struct net_conn *conn)
{
	return base_error(WREATH_ENET,
			  "the memory that %s registered cannot be mapped by "
			  "%s", plan->net->names[conn->peer],
			  plan->net->names[plan->net->rank]);
}

/* Has @conn's peer granted us the @kinds, and can we reach them? */
static int is_readable(const struct exec_plan *plan,
		       const struct net_conn *conn, uint32_t kinds)
{
	if ((conn->place.kinds & kinds) != kinds)
		return 0;
	if (((kinds & NET_PLACE_OUTPUT) && !conn->output_map) ||
	    ((kinds & NET_PLACE_INPUT) && !conn->input_map))
		return exec_not_mapped(plan, conn);
	return 1;
}

/*
 * Has a rank granted memory of a GPU, where another has no GPU in the operation
 * to reach it with?  That need not be this rank, nor a peer of it in the
 * question: what each has told all, and only that, must decide.
 */
static bool is_beyond_some(const struct exec_plan *plan)
{
	const uint32_t on_gpu = NET_PLACE_OUTPUT_GPU | NET_PLACE_INPUT_GPU;
	bool has_host = !plan->args->gpu;
	bool has_gpu = false;
	uint32_t i;

	for (i = 0; i < plan->n_grants_to; i++)
		has_gpu |= (plan->grants_to[i]->granted & on_gpu) != 0;
	for (i = 0; i < plan->n_grants_from; i++) {
		uint32_t told = plan->grants_from[i]->place_told;

		has_gpu |= (told & on_gpu) != 0;
		has_host |= !(told & NET_PLACE_GPU_OP);
	}
	return has_gpu && has_host;
}

/*
 * Hear every peer's grant.  If all of them, and this rank, granted what it
 * takes, no slot is needed; since everyone told everyone the same, all
 * conclude alike.
 */
static int agree_of_all(struct exec_plan *plan)
{
	uint32_t kinds = plan->read_kinds;
	uint32_t i;

	plan->is_in_place = !is_beyond_some(plan);
	for (i = 0; i < plan->n_grants_to; i++)
		plan->is_in_place &=
			(plan->grants_to[i]->granted & kinds) == kinds;
	for (i = 0; i < plan->n_grants_from; i++) {
		int is = is_readable(plan, plan->grants_from[i], kinds);

		if (is < 0)
			return is;
		plan->is_in_place &= is;
	}
	return 0;
}

/* Only what the root granted counts, and it told everyone the same. */
static int agree_of_root(struct exec_plan *plan)
{
	int root = plan->sched->shape.root;
	uint32_t i;

	plan->is_in_place = true;
	for (i = 0; i < plan->n_grants_to && plan->net->rank == root; i++)
		plan->is_in_place &= (plan->grants_to[i]->granted &
				      NET_PLACE_INPUT) != 0;
	for (i = 0; i < plan->n_grants_from; i++) {
		int is = 1;

		if (plan->grants_from[i]->peer == root)
			is = is_readable(plan, plan->grants_from[i],
					 NET_PLACE_INPUT);
		if (is < 0)
			return is;
		plan->is_in_place &= is;
	}
	return 0;
}

int exec_places(struct exec_plan *plan)
{
	int err = grant(plan);

	/* Of lengths that only two ranks know all cannot conclude anything.
	 * And one pass it is anyway where all fits the slots: then each two
	 * ranks do what they granted, and nobody waits for the grants of all
	 * before the first message. */
	if (err || plan->is_private || plan->reading == EXEC_READ_NONE ||
	    plan->n_passes == 1)
		return err;
	err = hear_grants(plan);
	if (!err)
		err = plan->reading == EXEC_READ_ALL ? agree_of_all(plan)
						     : agree_of_root(plan);
	if (!err && plan->is_in_place)
		exec_enter(plan);
	return err;
}

static int await_reader(struct exec_plan *plan, const struct net_lane *end)
{
	struct exec_wait wait;

	exec_wait_reset(&wait);
	while (!net_is_read(end)) {
		int err;

		plan->lanes[0].waits_for = end;
		plan->lanes[0].is_done = false;
		err = exec_wait(plan, &wait);
		if (err)
			return err;
	}
	return 0;
}

int exec_leave_places(struct exec_plan *plan)
{
	uint32_t i;
	int err = 0;

	/* Those of steps that had nothing to do: they must not be left. */
	if (plan->n_missing)
		err = hear_grants(plan);
	for (i = 0; i < plan->n_awaits && !err; i++)
		if (plan->awaits[i]->conn->granted & NET_PLACE_INPUT)
			err = await_reader(plan, plan->awaits[i]);
	return err;
}
