/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <endian.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sock.h"
#include "thread.h"
#include "tree.h"

static int check_args(const struct boot_args *args)
{
	if (args->n_ranks < 1 || args->n_ranks > BOOT_MAX_RANKS)
		return base_error(WREATH_EINVAL,
				  "%d ranks are asked for, there may be 1 to "
				  "%d",
				  args->n_ranks, BOOT_MAX_RANKS);
	if (args->rank < 0 || args->rank >= args->n_ranks)
		return base_error(WREATH_EINVAL, "rank %d is not in [0, %d)",
				  args->rank, args->n_ranks);
	if (args->join_timeout_ms < 1 || args->timeout_ms < 1)
		return base_error(WREATH_EINVAL,
				  "the deadlines of rank %d must be above 0",
				  args->rank);
	if (args->config && strlen(args->config) >= BOOT_CONFIG_BYTES)
		return base_error(WREATH_EINVAL,
				  "the settings '%s' are longer than %d "
				  "characters",
				  args->config, BOOT_CONFIG_BYTES - 1);
	return 0;
}

static void init_links(struct boot *boot)
{
	size_t i;

	boot_shape_of(boot->rank, boot->n_ranks, &boot->shape);
	for (i = 0; i < base_countof(boot->links); i++)
		boot_link_init(&boot->links[i]);
	for (i = 0; i < base_countof(boot->guests); i++)
		boot->guests[i].fd = -1;
	if (boot->shape.parent >= 0) {
		boot->links[0].state = BOOT_LINK_WAITS;
		boot->links[0].rank = boot->shape.parent;
	}
	for (i = 0; i < (size_t)boot->shape.n_children; i++) {
		struct boot_link *link = &boot->links[1 + i];

		link->state = BOOT_LINK_WAITS;
		link->rank = boot->shape.child[i].first;
		link->first = boot->shape.child[i].first;
		link->end = boot->shape.child[i].end;
	}
}

static int boot_new(const struct boot_args *args, struct boot **out)
{
	size_t n = (size_t)args->n_ranks;
	struct boot_head head = {.type = BOOT_FAIL, .bytes = BOOT_TEXT_BYTES};
	pthread_condattr_t attr;
	struct boot *boot = base_alloc(1, sizeof(*boot));

	if (!boot)
		return WREATH_ENOMEM;
	pthread_mutex_init(&boot->lock, NULL);
	/* Deadlines are on the clock that never jumps. */
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&boot->changed, &attr);
	pthread_condattr_destroy(&attr);
	boot->rank = args->rank;
	boot->n_ranks = args->n_ranks;
	boot->timeout_ms = args->timeout_ms;
	boot->process = (int)getpid();
	boot->listener = -1;
	boot->wake = -1;
	boot->gather.sequence = 1;
	boot->join_deadline_ns =
		base_now_ns() + (uint64_t)args->join_timeout_ms * 1000000;
	init_links(boot);
	boot->inboxes = base_alloc(n, sizeof(*boot->inboxes));
	boot->left = base_alloc(n, sizeof(*boot->left));
	boot->failure_frame = boot_frame_new(&head);
	if (!boot->inboxes || !boot->left || !boot->failure_frame) {
		boot_free(boot);
		return WREATH_ENOMEM;
	}
	*out = boot;
	return 0;
}

static int start_thread(struct boot *boot)
{
	int err;

	boot->wake = boot_sock_event();
	if (boot->wake < 0) {
		err = base_error(WREATH_ENOMEM,
				 "rank %d got no event descriptor: %s",
				 boot->rank, strerror(-boot->wake));
		boot->wake = -1;
		return err;
	}
	/* The thread begins by taking the lock, and then knows its own name. */
	pthread_mutex_lock(&boot->lock);
	err = boot_thread_start(boot_serve, boot, "wreath-boot", &boot->thread);
	boot->has_thread = !err;
	pthread_mutex_unlock(&boot->lock);
	if (err)
		return base_error(WREATH_ENOMEM,
				  "rank %d's thread did not "
				  "start: %s",
				  boot->rank, strerror(err));
	return 0;
}

/* The first all-gather: it ends when the whole tree stands. */
static int gather_names(struct boot *boot, int64_t timeout_ms)
{
	struct boot_member_wire mine = {
		.name = {.pid = htole32((uint32_t)getpid())},
		.listens_at = boot->listens_at,
	};
	size_t n = (size_t)boot->n_ranks;
	struct boot_member_wire *all = base_alloc(n, sizeof(*all));
	struct boot_rank *ranks = base_alloc(n, sizeof(*ranks));
	struct boot_addr *addrs = base_alloc(n, sizeof(*addrs));
	int err = WREATH_ENOMEM;
	size_t i;

	if (gethostname(mine.name.host, sizeof(mine.name.host) - 1))
		snprintf(mine.name.host, sizeof(mine.name.host), "unknown");
	if (all && ranks && addrs)
		err = boot_gather_within(boot, timeout_ms, &mine, sizeof(mine),
					 all);
	for (i = 0; !err && i < n; i++) {
		ranks[i].pid = (int)le32toh(all[i].name.pid);
		memcpy(ranks[i].host, all[i].name.host, sizeof(ranks[i].host));
		boot_text_clean(ranks[i].host, sizeof(ranks[i].host));
		addrs[i] = all[i].listens_at;
	}
	if (!err) {
		pthread_mutex_lock(&boot->lock);
		boot->ranks = ranks;
		boot->addrs = addrs;
		pthread_mutex_unlock(&boot->lock);
		ranks = NULL;
		addrs = NULL;
	}
	base_free(all);
	base_free(ranks);
	base_free(addrs);
	return err;
}

static int join_tree(struct boot *boot, const struct boot_args *args)
{
	struct boot_id id;
	int64_t left_ms;
	int stopped;
	int err = boot_id_decode(args->id, &id);

	if (err)
		return err;
	memcpy(boot->secret, id.secret, sizeof(boot->secret));
	stopped = boot_join(boot, args, &id);
	sodium_memzero(&id, sizeof(id));
	if (stopped && !boot->has_place)
		return stopped;
	boot->stands = !boot->shape.n_children;
	err = start_thread(boot);
	/* Who gives up only now tells the tree, which takes the thread. */
	if (err || stopped)
		return err ? err : stopped;
	left_ms = boot_sock_ms_left(boot->join_deadline_ns);
	pthread_mutex_lock(&boot->lock);
	boot->while_waiting = args->stopped;
	boot->while_waiting_arg = args->stopped_arg;
	pthread_mutex_unlock(&boot->lock);
	/* All have come: whoever is alive needs a moment only. */
	return gather_names(boot, left_ms < 5000 ? 5000 : left_ms);
}

/* Not before there is something that the callback could be about. */
static void arm(struct boot *boot, const struct boot_args *args)
{
	boot_lock(boot);
	boot->on_failure = args->on_failure;
	boot->on_failure_arg = args->on_failure_arg;
	/* A rank may have died since. */
	boot->callback_is_due = args->on_failure && boot->has_failed;
	boot->while_waiting = args->while_waiting;
	boot->while_waiting_arg = args->while_waiting_arg;
	if (boot->callback_is_due)
		boot_sock_event_set(boot->wake);
	boot_unlock(boot);
}

int boot_open(const struct boot_args *args, struct boot **out)
{
	char text[BOOT_TEXT_BYTES];
	struct boot *boot;
	int err = check_args(args);

	if (err)
		return err;
	err = boot_new(args, &boot);
	if (err)
		return err;
	err = args->n_ranks == 1 ? gather_names(boot, 1000)
				 : join_tree(boot, args);
	if (err) {
		/* Those who are connected to us hear the reason. */
		snprintf(text, sizeof(text), "%s", base_error_text());
		boot_fail(boot, err, -1, text);
		boot_close(boot);
		return base_error_again(err, text);
	}
	arm(boot, args);
	*out = boot;
	return 0;
}

const struct boot_rank *boot_rank(const struct boot *boot, int rank)
{
	return &boot->ranks[rank];
}
