/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <string.h>

#include "tree.h"

static bool is_route(const struct boot *boot, const struct boot_link *link)
{
	const struct boot_head *head = &link->head;

	return head->source < (uint32_t)boot->n_ranks &&
	       head->target < (uint32_t)boot->n_ranks &&
	       boot_link_leads_to(boot, link, (int)head->source) &&
	       !boot_link_leads_to(boot, link, (int)head->target);
}

static void deliver(struct boot *boot, struct boot_frame *frame)
{
	struct boot_inbox *inbox = &boot->inboxes[frame->head.source];

	frame->n_refs++;
	frame->next = NULL;
	if (!inbox->head)
		inbox->end = &inbox->head;
	*inbox->end = frame;
	inbox->end = &frame->next;
	inbox->n_waiting++;
	/* Pairs with boot_recv_now(), which looks without the lock. */
	atomic_store_explicit(&inbox->any, true, memory_order_release);
	pthread_cond_broadcast(&boot->changed);
}

bool boot_message_begins(struct boot *boot, struct boot_link *link)
{
	const struct boot_head *head = &link->head;

	if (!is_route(boot, link) || head->bytes > BOOT_RECORD_MAX)
		return false;
	if (head->type == BOOT_MESSAGE && (int)head->target == boot->rank &&
	    boot->inboxes[head->source].n_waiting >= BOOT_WINDOW)
		return false;
	link->frame = boot_frame_new(head);
	if (!link->frame) {
		boot_fail_locked(boot, WREATH_ENOMEM, boot->rank,
				 "rank %d has no memory for a message of rank "
				 "%u",
				 boot->rank, head->source);
		return true;
	}
	link->into = boot_frame_payload(link->frame);
	return true;
}

void boot_message_ends(struct boot *boot, struct boot_link *link)
{
	struct boot_frame *frame = link->frame;

	link->frame = NULL;
	if (!frame)
		return;
	if ((int)frame->head.target == boot->rank &&
	    frame->head.type == BOOT_NOTE)
		boot_note_arrives(boot, frame);
	else if ((int)frame->head.target == boot->rank &&
		 frame->head.type == BOOT_ASK)
		boot_ask_arrives(boot, frame);
	else if ((int)frame->head.target == boot->rank)
		deliver(boot, frame);
	else
		boot_link_queue(
			boot, boot_link_towards(boot, (int)frame->head.target),
			frame);
	boot_frame_put(frame);
}

bool boot_credit_arrives(struct boot *boot, struct boot_link *link)
{
	struct boot_inbox *inbox;
	struct boot_frame *frame;

	if (!is_route(boot, link) || link->head.bytes)
		return false;
	if ((int)link->head.target == boot->rank) {
		inbox = &boot->inboxes[link->head.source];
		if (link->head.value > (uint32_t)inbox->n_unseen)
			return false;
		inbox->n_unseen -= (int)link->head.value;
		return true;
	}
	frame = boot_frame_new(&link->head);
	if (!frame)
		return false;
	boot_link_queue(boot, boot_link_towards(boot, (int)link->head.target),
			frame);
	boot_frame_put(frame);
	return true;
}

void boot_message_release(struct boot *boot)
{
	int i;

	for (i = 0; boot->inboxes && i < boot->n_ranks; i++) {
		while (boot->inboxes[i].head) {
			struct boot_frame *frame = boot->inboxes[i].head;

			boot->inboxes[i].head = frame->next;
			boot_frame_put(frame);
		}
	}
	base_free(boot->inboxes);
	boot->inboxes = NULL;
}

static int check_peer(const struct boot *boot, int peer, size_t bytes)
{
	if (peer < 0 || peer >= boot->n_ranks)
		return base_error(WREATH_EINVAL, "rank %d is not in [0, %d)",
				  peer, boot->n_ranks);
	if (bytes > BOOT_RECORD_MAX)
		return base_error(WREATH_EINVAL,
				  "a message of %zu bytes is longer than %d",
				  bytes, BOOT_RECORD_MAX);
	return 0;
}

int boot_check_way(struct boot *boot, int peer)
{
	const struct boot_link *link;
	char name[128];

	if (boot->has_failed)
		return boot_failed_again(boot);
	if (peer == boot->rank)
		return 0;
	boot_name(boot, peer, name);
	if (boot_has_left(boot, peer))
		return base_error(WREATH_EPEER, "%s has left", name);
	link = boot_link_towards(boot, peer);
	if (link->state == BOOT_LINK_CLOSED)
		return base_error(WREATH_EPEER,
				  "%s cannot be reached: the way there led "
				  "through rank %d, which has left",
				  name, link->rank);
	return 0;
}

static int send_locked(struct boot *boot, int peer, const void *record,
		       size_t bytes)
{
	struct boot_inbox *inbox = &boot->inboxes[peer];
	struct boot_head head = {
		.type = BOOT_MESSAGE,
		.source = (uint32_t)boot->rank,
		.target = (uint32_t)peer,
		.bytes = (uint32_t)bytes,
	};
	struct boot_frame *frame;
	char name[128];

	if (inbox->n_unseen == BOOT_WINDOW) {
		boot_name(boot, peer, name);
		return base_error(WREATH_EAGAIN,
				  "%s has not taken %d messages of rank %d yet",
				  name, BOOT_WINDOW, boot->rank);
	}
	frame = boot_frame_new(&head);
	if (!frame)
		return WREATH_ENOMEM;
	if (bytes)
		memcpy(boot_frame_payload(frame), record, bytes);
	inbox->n_unseen++;
	if (peer == boot->rank)
		deliver(boot, frame);
	else
		boot_link_queue(boot, boot_link_towards(boot, peer), frame);
	boot_frame_put(frame);
	boot_links_flush(boot);
	return boot->has_failed ? boot_failed_again(boot) : 0;
}

int boot_send(struct boot *boot, int peer, const void *record, size_t bytes)
{
	int err = check_peer(boot, peer, bytes);

	if (err)
		return err;
	boot_lock(boot);
	err = boot_check_way(boot, peer);
	if (!err)
		err = send_locked(boot, peer, record, bytes);
	boot_unlock(boot);
	return err;
}

/* Half a window at a time: a pair that says little costs no credits at all. */
static void give_credit(struct boot *boot, int peer)
{
	struct boot_inbox *inbox = &boot->inboxes[peer];
	struct boot_head head = {
		.type = BOOT_CREDIT,
		.source = (uint32_t)boot->rank,
		.target = (uint32_t)peer,
	};
	struct boot_frame *frame;

	if (peer == boot->rank) {
		inbox->n_unseen--;
		return;
	}
	if (++inbox->n_taken < BOOT_WINDOW / 2)
		return;
	head.value = (uint32_t)inbox->n_taken;
	frame = boot_frame_new(&head);
	/* Without memory it is tried again at the next message. */
	if (!frame)
		return;
	inbox->n_taken = 0;
	boot_link_queue(boot, boot_link_towards(boot, peer), frame);
	boot_frame_put(frame);
	boot_links_flush(boot);
}

static int take(struct boot *boot, int peer, void *record, size_t bytes)
{
	struct boot_inbox *inbox = &boot->inboxes[peer];
	struct boot_frame *frame = inbox->head;
	int err = 0;

	if (frame->head.bytes != bytes)
		err = base_error(WREATH_EMISMATCH,
				 "rank %d sent a message of %u bytes, rank %d "
				 "expects %zu",
				 peer, frame->head.bytes, boot->rank, bytes);
	else if (bytes)
		memcpy(record, boot_frame_payload(frame), bytes);
	inbox->head = frame->next;
	inbox->n_waiting--;
	atomic_store_explicit(&inbox->any, inbox->head != NULL,
			      memory_order_relaxed);
	boot_frame_put(frame);
	give_credit(boot, peer);
	return err;
}

int boot_recv(struct boot *boot, int peer, void *record, size_t bytes)
{
	uint64_t deadline_ns =
		base_now_ns() + (uint64_t)boot->timeout_ms * 1000000;
	int err = check_peer(boot, peer, bytes);
	char name[128];
	char within[24];

	if (err)
		return err;
	boot_lock(boot);
	while (!boot->inboxes[peer].head) {
		err = boot_check_way(boot, peer);
		if (err)
			break;
		if (boot_wait(boot, deadline_ns, &err) ||
		    boot->inboxes[peer].head)
			continue;
		if (err)
			break;
		boot_name(boot, peer, name);
		boot_text_ms(boot->timeout_ms, within);
		err = base_error(WREATH_ETIMEOUT,
				 "no message of %s came to rank %d within %s",
				 name, boot->rank, within);
		break;
	}
	if (!err)
		err = take(boot, peer, record, bytes);
	boot_unlock(boot);
	return err;
}

int boot_recv_now(struct boot *boot, int peer, void *record, size_t bytes)
{
	int err = check_peer(boot, peer, bytes);

	if (err)
		return err;
	/* Pairs with the release in deliver(). */
	if (base_likely(!atomic_load_explicit(&boot->inboxes[peer].any,
					      memory_order_acquire)))
		return WREATH_EAGAIN;
	boot_lock(boot);
	err = take(boot, peer, record, bytes);
	boot_unlock(boot);
	return err;
}
