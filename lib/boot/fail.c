/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sock.h"
#include "tree.h"

/* How often boot->while_waiting is called. */
#define WAITING_MS 10

void boot_lock(struct boot *boot)
{
	pthread_mutex_lock(&boot->lock);
}

/*
 * The callback runs without the lock, in boot's thread: whoever causes a
 * failure may hold locks that the callback wants.  With one rank there is no
 * thread but the caller's.
 */
void boot_unlock(struct boot *boot)
{
	if (boot->callback_is_due && !boot->callback_runs &&
	    (!boot->has_thread ||
	     pthread_equal(boot->thread, pthread_self()))) {
		void (*on_failure)(void *arg) = boot->on_failure;

		boot->callback_is_due = false;
		boot->callback_runs = true;
		pthread_mutex_unlock(&boot->lock);
		on_failure(boot->on_failure_arg);
		pthread_mutex_lock(&boot->lock);
		boot->callback_runs = false;
		pthread_cond_broadcast(&boot->changed);
	}
	pthread_mutex_unlock(&boot->lock);
}

bool boot_sleep(struct boot *boot, uint64_t deadline_ns)
{
	struct timespec until = {
		.tv_sec = (time_t)(deadline_ns / 1000000000),
		.tv_nsec = (long)(deadline_ns % 1000000000),
	};

	return pthread_cond_timedwait(&boot->changed, &boot->lock, &until) !=
	       ETIMEDOUT;
}

bool boot_wait(struct boot *boot, uint64_t deadline_ns, int *err)
{
	uint64_t soon_ns = base_now_ns() + WAITING_MS * UINT64_C(1000000);

	*err = 0;
	if (!boot->while_waiting)
		return boot_sleep(boot, deadline_ns);
	if (boot_sleep(boot, soon_ns < deadline_ns ? soon_ns : deadline_ns))
		return true;
	boot_unlock(boot);
	*err = boot->while_waiting(boot->while_waiting_arg);
	boot_lock(boot);
	return !*err && base_now_ns() < deadline_ns;
}

void boot_name(const struct boot *boot, int rank, char text[128])
{
	const struct boot_rank *name = boot->ranks ? &boot->ranks[rank] : NULL;
	size_t i;

	for (i = 0; !name && i < base_countof(boot->links); i++)
		if (boot->links[i].rank == rank)
			name = &boot->links[i].name;
	if (name)
		snprintf(text, 128, "rank %d (host %.63s, pid %d)", rank,
			 name->host, name->pid);
	else
		snprintf(text, 128, "rank %d", rank);
}

/* The frame was made when the communicator was: this needs no memory. */
static void queue_failure(struct boot *boot)
{
	struct boot_frame *frame = boot->failure_frame;
	size_t bytes = strlen(boot->failure.text);

	if (!frame)
		return;
	frame->head.type = BOOT_FAIL;
	frame->head.value = (uint32_t)-boot->failure.error;
	frame->head.source = (uint32_t)(boot->failure.culprit + 1);
	frame->head.bytes = (uint32_t)bytes;
	frame->bytes = BOOT_HEAD_BYTES + bytes;
	boot_head_encode(&frame->head, frame->data);
	memcpy(boot_frame_payload(frame), boot->failure.text, bytes);
	boot_link_queue_all(boot, NULL, frame);
}

static void set_failure(struct boot *boot, int error, int culprit)
{
	boot->failure.error = error;
	boot->failure.culprit = culprit < boot->n_ranks ? culprit : -1;
	boot_text_clean(boot->failure.text, sizeof(boot->failure.text));
	base_log(BASE_LOG_INFO, "rank %d: %s: %s", boot->rank,
		 wreath_error_name(error), boot->failure.text);
	/* Pairs with the acquire in boot_failure(). */
	atomic_store_explicit(&boot->has_failed, true, memory_order_release);
	boot->callback_is_due = boot->on_failure != NULL;
	queue_failure(boot);
	pthread_cond_broadcast(&boot->changed);
	if (boot->wake >= 0)
		boot_sock_event_set(boot->wake);
}

void boot_fail_locked(struct boot *boot, int error, int culprit,
		      const char *fmt, ...)
{
	va_list ap;

	if (boot->has_failed)
		return;
	va_start(ap, fmt);
	vsnprintf(boot->failure.text, sizeof(boot->failure.text), fmt, ap);
	va_end(ap);
	set_failure(boot, error, culprit);
}

int boot_failed_again(struct boot *boot)
{
	return base_error_again(boot->failure.error, boot->failure.text);
}

bool boot_failure_begins(struct boot *boot, struct boot_link *link)
{
	if (link->head.bytes >= BOOT_TEXT_BYTES ||
	    link->head.source > (uint32_t)boot->n_ranks ||
	    (int32_t)link->head.value < 1 || link->head.value > 1000)
		return false;
	/* The text of a second failure is read and forgotten. */
	if (boot->has_failed)
		return true;
	memset(boot->failure.text, 0, sizeof(boot->failure.text));
	link->frame = boot_frame_new(&link->head);
	if (link->frame)
		link->into = boot_frame_payload(link->frame);
	return true;
}

void boot_failure_ends(struct boot *boot, struct boot_link *link)
{
	struct boot_frame *frame = link->frame;

	link->frame = NULL;
	if (frame && !boot->has_failed)
		memcpy(boot->failure.text, boot_frame_payload(frame),
		       frame->head.bytes);
	if (!boot->has_failed)
		set_failure(boot, -(int)link->head.value,
			    (int)link->head.source - 1);
	boot_frame_put(frame);
}

void boot_link_died(struct boot *boot, struct boot_link *link, int err)
{
	char name[128];

	boot_link_close(link);
	if (boot->has_failed || boot_has_left(boot, link->rank))
		return;
	boot_name(boot, link->rank, name);
	if (err == -EBADMSG)
		boot_fail_locked(boot, WREATH_ENET, link->rank,
				 "%s sent rank %d bytes that are no frame of "
				 "the protocol",
				 name, boot->rank);
	else if (err == -ETIMEDOUT || err == -EHOSTUNREACH ||
		 err == -ENETUNREACH)
		boot_fail_locked(boot, WREATH_EPEER, link->rank,
				 "%s cannot be reached any more from rank %d "
				 "(%s): its host or the network between is "
				 "down",
				 name, boot->rank, strerror(-err));
	else
		boot_fail_locked(boot, WREATH_EPEER, link->rank,
				 "%s died: its connection to rank %d ended "
				 "without a goodbye (%s)",
				 name, boot->rank,
				 err == -EPIPE ? "closed" : strerror(-err));
}

static void mark_left(struct boot *boot, int rank)
{
	atomic_store_explicit(&boot->left[rank], 1, memory_order_release);
	pthread_cond_broadcast(&boot->changed);
}

bool boot_leave_arrives(struct boot *boot, struct boot_link *link)
{
	struct boot_frame *frame;

	if (link->head.bytes || link->head.source >= (uint32_t)boot->n_ranks ||
	    !boot_link_leads_to(boot, link, (int)link->head.source))
		return false;
	mark_left(boot, (int)link->head.source);
	frame = boot_frame_new(&link->head);
	if (!frame)
		return false;
	boot_link_queue_all(boot, link, frame);
	boot_frame_put(frame);
	return true;
}

void boot_leave(struct boot *boot)
{
	struct boot_head head = {
		.type = BOOT_LEAVE,
		.source = (uint32_t)boot->rank,
	};
	struct boot_frame *frame = boot_frame_new(&head);

	mark_left(boot, boot->rank);
	if (!frame)
		return;
	boot_link_queue_all(boot, NULL, frame);
	boot_frame_put(frame);
}

void boot_fail(struct boot *boot, int error, int culprit, const char *text)
{
	boot_lock(boot);
	boot_fail_locked(boot, error, culprit, "%s", text);
	if (boot->has_thread)
		boot_links_flush(boot);
	boot_unlock(boot);
}

bool boot_failure(struct boot *boot, struct boot_failure *out)
{
	/* Pairs with the release in set_failure(). */
	if (base_likely(!atomic_load_explicit(&boot->has_failed,
					      memory_order_acquire)))
		return false;
	*out = boot->failure;
	return true;
}

bool boot_has_left(struct boot *boot, int rank)
{
	/* Pairs with the release in mark_left(). */
	return atomic_load_explicit(&boot->left[rank], memory_order_acquire);
}
