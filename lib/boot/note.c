/* SPDX-License-Identifier: MIT */
/*
 * Notes: like messages, but apart from them, and nobody waits for one.  They
 * are taken in the order of their coming, whoever sent them.
 */
#include <string.h>

#include "tree.h"

/* So many wait for a rank that is too busy to take them; more are an attack:
 * a connection has two under way at most. */
#define NOTES_WAITING 65536

void boot_note_arrives(struct boot *boot, struct boot_frame *frame)
{
	struct boot_notes *notes = &boot->notes;

	if (notes->n_waiting == NOTES_WAITING) {
		boot_fail_locked(boot, WREATH_ENOMEM, (int)frame->head.source,
				 "%d notes wait for rank %d, which does not "
				 "take them", NOTES_WAITING, boot->rank);
		return;
	}
	frame->n_refs++;
	frame->next = NULL;
	if (!notes->head)
		notes->end = &notes->head;
	*notes->end = frame;
	notes->end = &frame->next;
	notes->n_waiting++;
	/* Pairs with boot_note_take(), which looks without the lock. */
	atomic_store_explicit(&notes->any, true, memory_order_release);
	pthread_cond_broadcast(&boot->changed);
}

void boot_notes_release(struct boot *boot)
{
	while (boot->notes.head) {
		struct boot_frame *frame = boot->notes.head;

		boot->notes.head = frame->next;
		boot_frame_put(frame);
	}
}

static int send_frame(struct boot *boot, enum boot_frame_type type, int peer,
		      const void *note, size_t bytes)
{
	struct boot_head head = {
		.type = type,
		.source = (uint32_t)boot->rank,
		.target = (uint32_t)peer,
		.bytes = (uint32_t)bytes,
	};
	struct boot_frame *frame;
	int err;

	wreath_assert(peer != boot->rank && bytes <= BOOT_RECORD_MAX);
	err = boot_check_way(boot, peer);
	frame = err ? NULL : boot_frame_new(&head);
	if (frame) {
		memcpy(boot_frame_payload(frame), note, bytes);
		boot_link_queue(boot, boot_link_towards(boot, peer), frame);
		boot_frame_put(frame);
	} else if (!err) {
		err = WREATH_ENOMEM;
	}
	return err;
}

static int send_note(struct boot *boot, enum boot_frame_type type, int peer,
		     const void *note, size_t bytes)
{
	int err;

	boot_lock(boot);
	err = send_frame(boot, type, peer, note, bytes);
	boot_links_flush(boot);
	boot_unlock(boot);
	return err;
}

int boot_note_send(struct boot *boot, int peer, const void *note, size_t bytes)
{
	return send_note(boot, BOOT_NOTE, peer, note, bytes);
}

int boot_ask(struct boot *boot, int peer, const void *ask, size_t bytes)
{
	return send_note(boot, BOOT_ASK, peer, ask, bytes);
}

void boot_answer_by(struct boot *boot, boot_answer_fn *answer, void *arg)
{
	boot_lock(boot);
	boot->answer = answer;
	boot->answer_arg = arg;
	boot_unlock(boot);
}

void boot_ask_arrives(struct boot *boot, struct boot_frame *frame)
{
	unsigned char reply[BOOT_ANSWER_MAX];
	size_t bytes = 0;

	if (boot->answer)
		bytes = boot->answer(boot->answer_arg,
				     boot_frame_payload(frame),
				     frame->head.bytes, reply);
	/* Without memory, or a way, there is no answer. */
	if (bytes)
		send_frame(boot, BOOT_NOTE, (int)frame->head.source, reply,
			   bytes);
}

bool boot_note_take(struct boot *boot, int *peer, void *note, size_t size,
		    size_t *bytes)
{
	struct boot_notes *notes = &boot->notes;
	struct boot_frame *frame;

	/* Pairs with the release in boot_note_arrives(). */
	if (base_likely(!atomic_load_explicit(&notes->any,
					      memory_order_acquire)))
		return false;
	boot_lock(boot);
	frame = notes->head;
	if (frame) {
		notes->head = frame->next;
		notes->n_waiting--;
		*peer = (int)frame->head.source;
		*bytes = base_min_size(frame->head.bytes, size);
		memcpy(note, boot_frame_payload(frame), *bytes);
		boot_frame_put(frame);
	}
	atomic_store_explicit(&notes->any, notes->head != NULL,
			      memory_order_relaxed);
	boot_unlock(boot);
	return frame != NULL;
}
