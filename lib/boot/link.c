/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "sock.h"
#include "tree.h"

struct boot_frame *boot_frame_new(const struct boot_head *head)
{
	struct boot_frame *frame;
	size_t bytes = BOOT_HEAD_BYTES + (size_t)head->bytes;

	frame = base_alloc(1, sizeof(*frame) + bytes);
	if (!frame)
		return NULL;
	frame->n_refs = 1;
	frame->head = *head;
	frame->bytes = bytes;
	boot_head_encode(head, frame->data);
	return frame;
}

unsigned char *boot_frame_payload(struct boot_frame *frame)
{
	return frame->data + BOOT_HEAD_BYTES;
}

void boot_frame_relabel(struct boot_frame *frame, enum boot_frame_type type)
{
	frame->head.type = type;
	boot_head_encode(&frame->head, frame->data);
}

void boot_frame_put(struct boot_frame *frame)
{
	if (frame && !--frame->n_refs)
		base_free(frame);
}

void boot_link_init(struct boot_link *link)
{
	memset(link, 0, sizeof(*link));
	link->state = BOOT_LINK_CLOSED;
	link->fd = -1;
	link->rank = -1;
	link->out_end = &link->out;
}

static void out_free(struct boot_link *link, struct boot_out *out)
{
	if (out->frame->head.type == BOOT_MESSAGE)
		link->message_bytes -= out->frame->bytes;
	boot_frame_put(out->frame);
	if (out != &link->failure)
		base_free(out);
}

static void drop_first(struct boot_link *link)
{
	struct boot_out *out = link->out;

	link->out = out->next;
	if (!link->out)
		link->out_end = &link->out;
	out_free(link, out);
	link->sent = 0;
}

void boot_link_close(struct boot_link *link)
{
	while (link->out)
		drop_first(link);
	boot_frame_put(link->frame);
	link->frame = NULL;
	link->state = BOOT_LINK_CLOSED;
	boot_sock_close(&link->fd);
}

/* Not a first frame that has gone in part: the rest must follow. */
static void drop_waiting(struct boot_link *link)
{
	struct boot_out *rest;

	if (!link->sent) {
		while (link->out)
			drop_first(link);
		return;
	}
	rest = link->out->next;
	link->out->next = NULL;
	link->out_end = &link->out->next;
	while (rest) {
		struct boot_out *out = rest;

		rest = out->next;
		out_free(link, out);
	}
}

static void append(struct boot_link *link, struct boot_out *out,
		   struct boot_frame *frame)
{
	frame->n_refs++;
	out->frame = frame;
	out->next = NULL;
	*link->out_end = out;
	link->out_end = &out->next;
	if (frame->head.type == BOOT_MESSAGE)
		link->message_bytes += frame->bytes;
}

void boot_link_queue(struct boot *boot, struct boot_link *link,
		     struct boot_frame *frame)
{
	struct boot_out *out;

	if (link->state == BOOT_LINK_CLOSED)
		return;
	if (frame->head.type == BOOT_FAIL) {
		/* It happens once, has its place kept, and overtakes. */
		drop_waiting(link);
		append(link, &link->failure, frame);
		return;
	}
	if (atomic_load_explicit(&boot->has_failed, memory_order_relaxed) &&
	    frame->head.type != BOOT_LEAVE)
		return;
	if (frame->head.type == BOOT_MESSAGE &&
	    link->message_bytes + frame->bytes > BOOT_QUEUE_BYTES) {
		boot_fail_locked(boot, WREATH_ENOMEM, link->rank,
				 "rank %d has %zu bytes of messages waiting "
				 "for rank %d, which does not take them",
				 boot->rank, link->message_bytes, link->rank);
		return;
	}
	out = base_alloc(1, sizeof(*out));
	if (out)
		append(link, out, frame);
	else
		boot_fail_locked(boot, WREATH_ENOMEM, -1,
				 "rank %d has no memory for a frame to rank %d",
				 boot->rank, link->rank);
}

void boot_link_queue_all(struct boot *boot, const struct boot_link *except,
			 struct boot_frame *frame)
{
	size_t i;

	for (i = 0; i < base_countof(boot->links); i++)
		if (&boot->links[i] != except)
			boot_link_queue(boot, &boot->links[i], frame);
}

bool boot_link_flush(struct boot_link *link, int *err)
{
	while (link->state == BOOT_LINK_UP && link->out) {
		const struct boot_frame *frame = link->out->frame;
		ssize_t n = boot_sock_send(link->fd, frame->data + link->sent,
					   frame->bytes - link->sent);

		if (n < 0) {
			*err = (int)n;
			return false;
		}
		if (!n)
			break;
		link->sent += (size_t)n;
		if (link->sent == frame->bytes)
			drop_first(link);
	}
	return true;
}

void boot_links_flush(struct boot *boot)
{
	bool wake = false;
	size_t i;
	int err;

	/*
	 * A link that breaks here is left for the thread to find: it first
	 * reads what the peer said last, which may be why.
	 */
	for (i = 0; i < base_countof(boot->links); i++)
		if (!boot_link_flush(&boot->links[i], &err) ||
		    boot->links[i].out)
			wake = true;
	if (wake)
		boot_sock_event_set(boot->wake);
}

static bool feed(struct boot *boot, struct boot_link *link,
		 const unsigned char *data, size_t bytes)
{
	while (bytes) {
		size_t n;

		if (link->head_have < BOOT_HEAD_BYTES) {
			n = base_min_size(bytes,
					  BOOT_HEAD_BYTES - link->head_have);
			memcpy(link->head_in + link->head_have, data, n);
			link->head_have += n;
			data += n;
			bytes -= n;
			if (link->head_have < BOOT_HEAD_BYTES)
				return true;
			if (!boot_head_decode(link->head_in, &link->head))
				return false;
			link->left = link->head.bytes;
			link->into = NULL;
			if (!boot_frame_begins(boot, link))
				return false;
		}
		n = base_min_size(bytes, link->left);
		if (n && link->into) {
			memcpy(link->into, data, n);
			link->into += n;
		}
		link->left -= n;
		data += n;
		bytes -= n;
		if (link->left)
			return true;
		link->head_have = 0;
		boot_frame_ends(boot, link);
	}
	return true;
}

bool boot_link_read(struct boot *boot, struct boot_link *link, int *err)
{
	int turns;

	/* Bounded, so that one neighbour cannot keep the thread from others. */
	for (turns = 0; turns < 64 && link->state == BOOT_LINK_UP; turns++) {
		bool direct = link->head_have == BOOT_HEAD_BYTES &&
			      link->into && link->left >= sizeof(boot->scratch);
		ssize_t n = direct ? boot_sock_recv(link->fd, link->into,
						    link->left)
				   : boot_sock_recv(link->fd, boot->scratch,
						    sizeof(boot->scratch));

		if (!n)
			break;
		if (n < 0) {
			*err = (int)n;
			return false;
		}
		if (direct) {
			link->into += n;
			link->left -= (size_t)n;
			if (link->left)
				continue;
			link->head_have = 0;
			boot_frame_ends(boot, link);
		} else if (!feed(boot, link, boot->scratch, (size_t)n)) {
			*err = -EBADMSG;
			return false;
		}
	}
	return true;
}

bool boot_link_leads_to(const struct boot *boot, const struct boot_link *link,
			int rank)
{
	if (link == &boot->links[0])
		return rank < boot->shape.first || rank >= boot->shape.end;
	return rank >= link->first && rank < link->end;
}

struct boot_link *boot_link_towards(struct boot *boot, int rank)
{
	size_t i;

	for (i = 1; i < base_countof(boot->links); i++)
		if (boot_link_leads_to(boot, &boot->links[i], rank))
			return &boot->links[i];
	return &boot->links[0];
}
