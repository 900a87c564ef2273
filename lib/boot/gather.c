/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tree.h"

/*
 * How much longer a rank waits than the deadline says.  Who is nearest to the
 * missing rank knows best which one that is, and should be the first to speak:
 * the deeper in the tree, the earlier; who has delivered its whole subtree
 * knows nothing, and speaks last.
 */
#define SLACK_LEVEL_MS 50
#define SLACK_DELIVERED_MS 500

/* Four children each: 65536 ranks are 8 levels below rank 0. */
#define DEEPEST 8

static size_t subtree_records(const struct boot *boot)
{
	return (size_t)(boot->shape.end - boot->shape.first);
}

/* Who comes first, the caller or a child's frame, says how long a record is. */
static bool begin(struct boot *boot, size_t record_bytes, int by)
{
	struct boot_gather *gather = &boot->gather;
	struct boot_head head = {
		.type = BOOT_UP,
		.sequence = gather->sequence,
		.value = (uint32_t)record_bytes,
		.bytes = (uint32_t)(record_bytes * subtree_records(boot)),
	};

	if (gather->begun) {
		if (gather->record_bytes == record_bytes)
			return true;
		boot_fail_locked(boot, WREATH_EMISMATCH, by,
				 "the ranks' records differ in length: rank "
				 "%d gathers %zu bytes, another below rank %d "
				 "%zu bytes",
				 by, record_bytes, boot->rank,
				 gather->record_bytes);
		return false;
	}
	gather->up = boot_frame_new(&head);
	if (!gather->up) {
		boot_fail_locked(boot, WREATH_ENOMEM, boot->rank,
				 "rank %d has no memory to gather %zu records "
				 "of %zu bytes",
				 boot->rank, subtree_records(boot),
				 record_bytes);
		return false;
	}
	gather->begun = true;
	gather->record_bytes = record_bytes;
	return true;
}

static void finish(struct boot *boot, struct boot_frame *down)
{
	struct boot_gather *gather = &boot->gather;
	int i;

	for (i = 0; i < boot->shape.n_children; i++)
		boot_link_queue(boot, &boot->links[1 + i], down);
	boot_frame_put(gather->up);
	boot_frame_put(gather->done);
	gather->done = down;
	gather->up = NULL;
	gather->down = NULL;
	gather->begun = false;
	gather->mine_is_in = false;
	gather->sent_up = false;
	memset(gather->child_is_in, 0, sizeof(gather->child_is_in));
	gather->sequence++;
	pthread_cond_broadcast(&boot->changed);
}

static void go_up(struct boot *boot)
{
	struct boot_gather *gather = &boot->gather;
	int i;

	if (!gather->mine_is_in || gather->sent_up)
		return;
	for (i = 0; i < boot->shape.n_children; i++)
		if (!gather->child_is_in[i])
			return;
	gather->sent_up = true;
	if (boot->rank) {
		boot_link_queue(boot, &boot->links[0], gather->up);
		return;
	}
	/* The subtree of rank 0 is everyone. */
	boot_frame_relabel(gather->up, BOOT_DOWN);
	gather->up->n_refs++;
	finish(boot, gather->up);
}

bool boot_gather_up_begins(struct boot *boot, struct boot_link *link)
{
	struct boot_gather *gather = &boot->gather;
	size_t i = (size_t)(link - boot->links) - 1;
	size_t record_bytes = link->head.value;
	size_t n = (size_t)(link->end - link->first);

	if (link == &boot->links[0] || gather->child_is_in[i] ||
	    link->head.sequence != gather->sequence ||
	    record_bytes > BOOT_RECORD_MAX ||
	    link->head.bytes != record_bytes * n)
		return false;
	/* Where it does not fit, all fail; these bytes go nowhere. */
	if (begin(boot, record_bytes, link->rank))
		link->into = boot_frame_payload(gather->up) +
			     record_bytes * (size_t)(link->first - boot->rank);
	return true;
}

void boot_gather_up_ends(struct boot *boot, struct boot_link *link)
{
	if (!boot->gather.begun)
		return;
	boot->gather.child_is_in[link - boot->links - 1] = true;
	go_up(boot);
}

bool boot_gather_down_begins(struct boot *boot, struct boot_link *link)
{
	struct boot_gather *gather = &boot->gather;

	if (link != &boot->links[0] || !gather->sent_up || gather->down ||
	    link->head.sequence != gather->sequence ||
	    link->head.value != gather->record_bytes ||
	    link->head.bytes != gather->record_bytes * (size_t)boot->n_ranks)
		return false;
	gather->down = boot_frame_new(&link->head);
	if (gather->down)
		link->into = boot_frame_payload(gather->down);
	else
		boot_fail_locked(boot, WREATH_ENOMEM, boot->rank,
				 "rank %d has no memory to gather %d records "
				 "of %zu bytes",
				 boot->rank, boot->n_ranks,
				 gather->record_bytes);
	return true;
}

void boot_gather_down_ends(struct boot *boot, struct boot_link *link)
{
	(void)link;
	if (boot->gather.down)
		finish(boot, boot->gather.down);
}

void boot_gather_release(struct boot *boot)
{
	boot_frame_put(boot->gather.up);
	boot_frame_put(boot->gather.down);
	boot_frame_put(boot->gather.done);
	boot->gather.up = NULL;
	boot->gather.down = NULL;
	boot->gather.done = NULL;
}

static void fail_late(struct boot *boot)
{
	const struct boot_gather *gather = &boot->gather;
	char late[600] = "";
	char within[24];
	size_t at = 0;
	int culprit = -1;
	int i;

	boot_text_ms(gather->timeout_ms, within);
	for (i = 0; i < boot->shape.n_children; i++) {
		const struct boot_link *link = &boot->links[1 + i];
		char name[128];

		if (gather->child_is_in[i])
			continue;
		boot_name(boot, link->rank, name);
		at += (size_t)snprintf(late + at, sizeof(late) - at, "%s%s",
				       at ? ", " : "", name);
		if (link->end > link->first + 1)
			at += (size_t)snprintf(late + at, sizeof(late) - at,
					       " or a rank behind it (to %d)",
					       link->end - 1);
		if (culprit < 0)
			culprit = link->rank;
	}
	if (culprit >= 0)
		boot_fail_locked(boot, WREATH_ETIMEOUT, culprit,
				 "rank %d waited %s in an all-gather for: %s",
				 boot->rank, within, late);
	else
		boot_fail_locked(boot, WREATH_ETIMEOUT, -1,
				 "rank %d waited %s in an all-gather for ranks "
				 "beyond rank %d",
				 boot->rank, within, boot->shape.parent);
}

static int first_left(const struct boot *boot)
{
	int i;

	for (i = 0; i < boot->n_ranks; i++)
		if (atomic_load_explicit(&boot->left[i], memory_order_relaxed))
			return i;
	return -1;
}

static uint64_t patience_ns(const struct boot *boot)
{
	int64_t slack_ms =
		boot->gather.sent_up
			? SLACK_DELIVERED_MS
			: SLACK_LEVEL_MS *
				  (int64_t)(DEEPEST - boot->shape.depth);

	return (uint64_t)(boot->gather.timeout_ms + slack_ms) * 1000000;
}

static int wait_down(struct boot *boot, uint64_t sequence)
{
	struct boot_gather *gather = &boot->gather;
	uint64_t start_ns = base_now_ns();
	int err = 0;

	/* A result that has come counts more than a failure after it. */
	while (gather->sequence == sequence) {
		char name[128];
		int gone = first_left(boot);

		if (boot->has_failed)
			return boot_failed_again(boot);
		/*
		 * A rank leaves after its own all-gathers, and its goodbye
		 * follows their results on every link: this one has no chance.
		 */
		if (gone >= 0) {
			boot_name(boot, gone, name);
			return base_error(
				WREATH_EPEER,
				"an all-gather of rank %d cannot end: "
				"%s has left",
				boot->rank, name);
		}
		/* Patience grows where the last child has just come. */
		if (base_now_ns() >= start_ns + patience_ns(boot)) {
			fail_late(boot);
			boot_links_flush(boot);
			continue;
		}
		boot_wait(boot, start_ns + patience_ns(boot), &err);
		if (err)
			return err;
	}
	return 0;
}

int boot_gather_within(struct boot *boot, int64_t timeout_ms, const void *mine,
		       size_t bytes, void *all)
{
	struct boot_gather *gather = &boot->gather;
	uint64_t sequence;
	int err;

	if (bytes > BOOT_RECORD_MAX)
		return base_error(WREATH_EINVAL,
				  "a record of %zu bytes is longer than %d",
				  bytes, BOOT_RECORD_MAX);
	boot_lock(boot);
	err = boot->has_failed ? boot_failed_again(boot) : 0;
	if (!err && !begin(boot, bytes, boot->rank))
		err = boot_failed_again(boot);
	if (!err) {
		sequence = gather->sequence;
		gather->timeout_ms = timeout_ms;
		if (bytes)
			memcpy(boot_frame_payload(gather->up), mine, bytes);
		gather->mine_is_in = true;
		go_up(boot);
		boot_links_flush(boot);
		err = wait_down(boot, sequence);
	}
	if (!err) {
		if (bytes)
			memcpy(all, boot_frame_payload(gather->done),
			       bytes * (size_t)boot->n_ranks);
		boot_frame_put(gather->done);
		gather->done = NULL;
	}
	boot_unlock(boot);
	return err;
}

int boot_all_gather(struct boot *boot, const void *mine, size_t bytes,
		    void *all)
{
	return boot_gather_within(boot, boot->timeout_ms, mine, bytes, all);
}
