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

int boot_note_send(struct boot *boot, int peer, const void *note, size_t bytes)
{
	struct boot_head head = {
		.type = BOOT_NOTE,
		.source = (uint32_t)boot->rank,
		.target = (uint32_t)peer,
		.bytes = (uint32_t)bytes,
	};
	struct boot_frame *frame;
	int err;

	wreath_assert(peer != boot->rank && bytes <= BOOT_RECORD_MAX);
	boot_lock(boot);
	err = boot_check_way(boot, peer);
	frame = err ? NULL : boot_frame_new(&head);
	if (frame) {
		memcpy(boot_frame_payload(frame), note, bytes);
		boot_link_queue(boot, boot_link_towards(boot, peer), frame);
		boot_frame_put(frame);
		boot_links_flush(boot);
	} else if (!err) {
		err = WREATH_ENOMEM;
	}
	boot_unlock(boot);
	return err;
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
