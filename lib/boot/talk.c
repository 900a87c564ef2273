/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "sock.h"
#include "survey.h"

unsigned char *boot_talk_payload(struct boot_talk *talk)
{
	return talk->in + BOOT_HEAD_BYTES;
}

int boot_talk_read(const struct boot_survey *survey, struct boot_talk *talk)
{
	size_t want = BOOT_HEAD_BYTES;
	ssize_t n;

	for (;;) {
		if (talk->have == BOOT_HEAD_BYTES &&
		    (!boot_head_decode(talk->in, &talk->head) ||
		     talk->head.bytes > survey->frame_bytes - BOOT_HEAD_BYTES))
			return -EBADMSG;
		if (talk->have >= BOOT_HEAD_BYTES)
			want = BOOT_HEAD_BYTES + talk->head.bytes;
		if (talk->have >= BOOT_HEAD_BYTES && talk->have == want)
			break;
		n = boot_sock_recv(talk->fd, talk->in + talk->have,
				   want - talk->have);
		if (n <= 0)
			return (int)n;
		talk->have += (size_t)n;
		if (talk->have < want)
			return 0;
	}
	talk->have = 0;
	return 1;
}

bool boot_talk_send(const struct boot_talk *talk, enum boot_frame_type type,
		    int value, const void *payload, size_t bytes)
{
	struct boot_head head = {
		.type = type,
		.value = (uint32_t)value,
		.bytes = (uint32_t)bytes,
	};
	struct boot_frame *frame = boot_frame_new(&head);
	bool sent;

	if (!frame)
		return false;
	if (bytes)
		memcpy(boot_frame_payload(frame), payload, bytes);
	sent = boot_sock_send(talk->fd, frame->data, frame->bytes) ==
	       (ssize_t)frame->bytes;
	boot_frame_put(frame);
	return sent;
}

int boot_talk_error(struct boot_talk *talk)
{
	char *words = (char *)boot_talk_payload(talk);
	size_t bytes = talk->head.bytes;

	if (!talk->head.value)
		return 0;
	if (talk->head.value > 1000 || bytes > BOOT_SURVEY_TEXT - 1)
		bytes = 0;
	words[bytes] = 0;
	boot_text_clean(words, bytes + 1);
	return base_error_again(talk->head.value > 1000
					? WREATH_ENET
					: -(int)talk->head.value, words);
}

bool boot_survey_stopped(struct boot_survey *survey)
{
	if (!survey->stopped && survey->args.stopped)
		survey->stopped = survey->args.stopped(
			survey->args.stopped_arg);
	return survey->stopped;
}

bool boot_errno_is_ours(int err)
{
	switch (-err) {
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
	case EACCES:
	case EPERM:
	case EADDRNOTAVAIL:
	case EAFNOSUPPORT:
		return true;
	default:
		return false;
	}
}

int boot_survey_no_socket(const struct boot_survey *survey, int err)
{
	bool is_memory = err == -EMFILE || err == -ENFILE ||
			 err == -ENOBUFS || err == -ENOMEM;

	return base_error(is_memory ? WREATH_ENOMEM : WREATH_ENET,
			  "rank %d cannot connect to the other survivors: %s",
			  survey->boot->rank, strerror(-err));
}
