/* SPDX-License-Identifier: MIT */
/*
 * How a communicator breaks: the first error stays, every rank is told, and
 * every later call returns it.
 */
#include <stdio.h>
#include <string.h>

#include "comm/inner.h"

/* A failure of a peer shows in the network before boot has named the cause;
 * it is worth waiting so long for the name. */
#define COMM_CAUSE_MS 500

int comm_error_told(struct wreath_comm *comm)
{
	int error = atomic_load_explicit(&comm->error, memory_order_acquire);

	pthread_mutex_lock(&comm->error_lock);
	base_error_again(error, comm->error_text);
	pthread_mutex_unlock(&comm->error_lock);
	return error;
}

/* The first error stays. */
static int keep_error(struct wreath_comm *comm, int error, const char *text)
{
	pthread_mutex_lock(&comm->error_lock);
	if (!atomic_load_explicit(&comm->error, memory_order_relaxed)) {
		snprintf(comm->error_text, sizeof(comm->error_text), "%s",
			 text);
		/* Pairs with the acquire in comm_error(). */
		atomic_store_explicit(&comm->error, error,
				      memory_order_release);
	}
	pthread_mutex_unlock(&comm->error_lock);
	return comm_error(comm);
}

int comm_break(struct wreath_comm *comm, int error, int culprit,
	       const char *text)
{
	error = keep_error(comm, error, text);
	if (comm->boot)
		boot_fail(comm->boot, error, culprit, text);
	return error;
}

static int heard_failure(struct wreath_comm *comm)
{
	struct boot_failure failure;

	/* A communicator of one has nobody to hear from. */
	if (!comm->boot || !boot_failure(comm->boot, &failure))
		return 0;
	return keep_error(comm, failure.error, failure.text);
}

void comm_own_words(const struct wreath_comm *comm, char text[2048])
{
	const char *name = comm->names[comm->rank];
	const char *words = base_error_text();

	if (!*name || strstr(words, name))
		snprintf(text, 2048, "%s", words);
	else
		snprintf(text, 2048, "%s: %s", name, words);
}

static int fail(struct wreath_comm *comm, int error)
{
	uint64_t end_ns = base_now_ns() + COMM_CAUSE_MS * 1000000ull;
	char text[2048];
	int heard = comm_error(comm);

	if (heard)
		return heard;
	comm_own_words(comm, text);
	if (!comm->boot)
		return keep_error(comm, error, text);
	/* A broken link is mostly the shadow of a dead rank: hear who. */
	while (!(heard = heard_failure(comm)) && error == WREATH_ENET &&
	       base_now_ns() < end_ns)
		base_sleep_ms(10);
	if (heard)
		return heard;
	boot_fail(comm->boot, error, -1, text);
	return keep_error(comm, error, text);
}

int comm_fail(struct wreath_comm *comm, int error)
{
	int err = fail(comm, error);

	/* Whoever it was told by: others may wait for this rank only. */
	if (comm->net)
		net_fail_tell(comm->net, err, base_error_text());
	return err;
}

int comm_guard_stopped(void *arg)
{
	struct wreath_comm *comm = arg;
	int err = comm_error(comm);

	/* A rank alone waits as well: for its GPU. */
	return err || !comm->boot ? err : heard_failure(comm);
}

int comm_guard_left(void *arg, int peer)
{
	struct wreath_comm *comm = arg;

	if (!boot_has_left(comm->boot, peer))
		return 0;
	return base_error(WREATH_EPEER,
			  "%s has destroyed its communicator while %s waits "
			  "for it; every rank must make the same calls",
			  comm->names[peer], comm->names[comm->rank]);
}

int wreath_comm_async_error(struct wreath_comm *comm)
{
	int err = comm_check(comm, "wreath_comm_async_error");

	if (err)
		return err;
	err = comm_error(comm);
	return err || !comm->boot ? err : heard_failure(comm);
}

bool comm_abort_joining(struct wreath_comm *comm)
{
	bool is_joining;

	/* Either the thread sees it, or we see that the thread is done. */
	pthread_mutex_lock(&comm->error_lock);
	is_joining = comm_is_joining(comm);
	atomic_store(&comm->aborted, true);
	pthread_mutex_unlock(&comm->error_lock);
	return is_joining;
}

void comm_joined(struct wreath_comm *comm, int err)
{
	bool aborted;

	pthread_mutex_lock(&comm->error_lock);
	aborted = !err && atomic_load(&comm->aborted);
	if (aborted)
		err = base_error(WREATH_EABORTED,
				 "%s called wreath_comm_abort()",
				 comm->names[comm->rank]);
	if (err)
		snprintf(comm->error_text, sizeof(comm->error_text), "%s",
			 base_error_text());
	if (aborted && comm->boot)
		boot_fail(comm->boot, err, comm->rank, comm->error_text);
	/* Pairs with the acquire in comm_error() and comm_is_joining(): boot
	 * and net are there, or the text is. */
	atomic_store_explicit(&comm->error, err, memory_order_release);
	pthread_mutex_unlock(&comm->error_lock);
}

int wreath_comm_abort(struct wreath_comm *comm)
{
	char text[256];
	int err = comm_check(comm, "wreath_comm_abort");

	if (err || comm_abort_joining(comm))
		return err;
	snprintf(text, sizeof(text), "%s called wreath_comm_abort()",
		 comm->names[comm->rank]);
	comm_break(comm, WREATH_EABORTED, comm->rank, text);
	return 0;
}
