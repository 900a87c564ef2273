/* SPDX-License-Identifier: MIT */
/* Going on without ranks that are dead, or not wanted any more. */
#include <stdio.h>
#include <string.h>

#include "comm/inner.h"

/*
 * Surveys, until one ends well: each further one is because a rank died while
 * the survivors of the one before joined.
 */
#define SHRINK_TRIES 8

/*
 * What is under way on the old communicator is ended after so long, where the
 * other survivors have not come until then: they may wait in it for a rank
 * that is to be left out.  Until then operations that all are in can end well,
 * on ranks that are a little slower than this one.
 */
#define SHRINK_GRACE_MS 500

struct shrink {
	struct wreath_comm *parent;
	struct boot_survey *survey;
	uint64_t grace_ns; /* when it ends */
	bool is_over;	   /* the parent is */
	bool left_out[COMM_RANKS_MAX];
};

/* Nobody may wait on the old one for ranks that have gone from it to here. */
static void end_parent(struct shrink *shrink)
{
	struct wreath_comm *parent = shrink->parent;
	char text[256];

	if (shrink->is_over)
		return;
	snprintf(text, sizeof(text),
		 "%s called wreath_comm_shrink(): this communicator is over",
		 parent->names[parent->rank]);
	comm_break(parent, WREATH_EABORTED, -1, text);
	shrink->is_over = true;
}

static int stopped(void *arg)
{
	struct shrink *shrink = arg;
	struct wreath_comm *parent = shrink->parent;

	if (base_now_ns() >= shrink->grace_ns)
		end_parent(shrink);
	if (!atomic_load(&parent->aborted))
		return 0;
	return base_error(WREATH_EABORTED,
			  "%s called wreath_comm_abort() while it shrank its "
			  "communicator", parent->names[parent->rank]);
}

static int take_list(struct shrink *shrink, const int *exclude, int n)
{
	const struct wreath_comm *parent = shrink->parent;
	static const char name[] = "wreath_comm_shrink";
	int i;

	if (n < 0 || (n && !exclude))
		return base_error(WREATH_EINVAL,
				  "%s: n_exclude is %d and exclude is %s", name,
				  n, exclude ? "not NULL" : "NULL");
	for (i = 0; i < n; i++) {
		if (exclude[i] < 0 || exclude[i] >= parent->n_ranks)
			return base_error(WREATH_EINVAL,
					  "%s: exclude[%d] is %d, which is not "
					  "in 0..%d", name, i, exclude[i],
					  parent->n_ranks - 1);
		if (exclude[i] == parent->rank)
			return base_error(WREATH_EINVAL,
					  "%s: exclude[%d] is %d, the caller "
					  "itself; ranks that are left out do "
					  "not call", name, i, exclude[i]);
		if (shrink->left_out[exclude[i]])
			return base_error(WREATH_EINVAL,
					  "%s: exclude[%d] is %d, which is "
					  "there twice", name, i, exclude[i]);
		shrink->left_out[exclude[i]] = true;
	}
	return 0;
}

/* This rank's own calls, on streams; a failure ends them at once. */
static void let_finish(struct shrink *shrink)
{
	struct wreath_comm *parent = shrink->parent;

	/* Pairs with the release in comm_pass_turn(). */
	while (atomic_load_explicit(&parent->turn, memory_order_acquire) !=
		       atomic_load(&parent->next_ticket) &&
	       base_now_ns() < shrink->grace_ns)
		base_sleep_ms(1);
}

/* One survey, and one joining of those that it found. */
static int try(struct shrink *shrink, int64_t timeout_ms,
	       struct wreath_comm **out)
{
	struct wreath_comm *parent = shrink->parent;
	const struct boot_survey_args args = {
		.left_out = shrink->left_out,
		.timeout_ms = timeout_ms,
		.idle_ms = parent->env.value[BASE_ENV_JOIN_TIMEOUT],
		.stopped = stopped,
		.stopped_arg = shrink,
	};
	const struct wreath_unique_id *id;
	struct wreath_comm *child = NULL;
	struct comm_stop stop = {.stopped = boot_survey_watch};
	int rank, n_ranks;
	int err = boot_survey_start(parent->boot, &args, &shrink->survey);

	if (err)
		return err;
	end_parent(shrink);
	stop.arg = shrink->survey;
	id = boot_survey_id(shrink->survey, &rank, &n_ranks);
	err = comm_new(id, rank, n_ranks, &parent->env, &stop, &child);
	err = boot_survey_end(shrink->survey,
			      parent->env.value[BASE_ENV_TIMEOUT], err,
			      child ? child->boot : NULL);
	/* Who has joined, where others have not, must not keep what it has. */
	if (err && child)
		comm_free(child);
	else if (!err)
		*out = child;
	return err;
}

static int shrink_on(struct shrink *shrink, struct wreath_comm **out)
{
	struct wreath_comm *parent = shrink->parent;
	int64_t timeout_ms = parent->env.value[BASE_ENV_TIMEOUT];
	uint64_t start_ns = base_now_ns();
	char text[2048];
	int err = WREATH_EAGAIN;
	int i;

	for (i = 0; i < SHRINK_TRIES && err == WREATH_EAGAIN; i++) {
		int64_t gone_ms = (int64_t)(base_now_ns() - start_ns) / 1000000;

		if (i && gone_ms >= timeout_ms)
			break;
		err = try(shrink, timeout_ms - gone_ms, out);
	}
	if (err != WREATH_EAGAIN)
		return err;
	snprintf(text, sizeof(text), "%.2000s", base_error_text());
	return base_error(WREATH_EPEER,
			  "%s found no survivors that stayed: %.1800s",
			  parent->names[parent->rank], text);
}

int wreath_comm_shrink(struct wreath_comm *comm, const int *exclude,
		       int n_exclude, struct wreath_comm **out)
{
	static const char name[] = "wreath_comm_shrink";
	struct shrink *shrink;
	char text[2048];
	int err = comm_check(comm, name);

	if (err)
		return err;
	if (!out)
		return base_error(WREATH_EINVAL, "%s: out is NULL", name);
	if (comm_is_joining(comm) || atomic_load(&comm->aborted))
		return comm_error(comm);
	if (comm->is_final)
		return base_error(WREATH_EINVAL,
				  "%s: the communicator is finalized", name);
	shrink = base_alloc(1, sizeof(*shrink));
	if (!shrink)
		return WREATH_ENOMEM;
	shrink->parent = comm;
	shrink->grace_ns = base_now_ns() + SHRINK_GRACE_MS * 1000000ull;
	err = take_list(shrink, exclude, n_exclude);
	if (!err) {
		let_finish(shrink);
		err = comm->boot ? shrink_on(shrink, out)
				 : comm_new(NULL, 0, 1, &comm->env, NULL, out);
		snprintf(text, sizeof(text), "%s", base_error_text());
		end_parent(shrink);
		comm_drain(comm);
		base_error_again(err, text);
	}
	base_free(shrink);
	return err;
}
