/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "soft/peer.h"

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

int soft_message_send(int socket, enum soft_message_type type, uint64_t a,
		      uint64_t b, int fd)
{
	struct soft_message message = {.magic = SOFT_MESSAGE_MAGIC,
				       .type = type, .a = a, .b = b};
	struct iovec iov = {&message, sizeof(message)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	union control control;
	ssize_t n;

	if (fd >= 0) {
		struct cmsghdr *cmsg;

		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	}
	do {
		n = sendmsg(socket, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? errno : 0;
}

int soft_payload_send(int socket, struct soft_message *message,
		      const void *payload, size_t bytes)
{
	struct iovec iov[2] = {{message, sizeof(*message)}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = bytes ? 2 : 1};
	ssize_t n;

	message->magic = SOFT_MESSAGE_MAGIC;
	/* sendmsg() reads only. */
	iov[1].iov_base = (void *)(uintptr_t)payload;
	iov[1].iov_len = bytes;
	do {
		n = sendmsg(socket, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? errno : 0;
}

int soft_message_recv(int socket, struct soft_message *message, int *fd,
		      void *payload, size_t *bytes)
{
	struct iovec iov[2] = {{message, sizeof(*message)},
			       {payload, SOFT_PAYLOAD}};
	union control control;
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = payload ? 2 : 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	ssize_t n;

	*fd = -1;
	do {
		n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno;
	/* More descriptors than one do not fit and are closed by the kernel. */
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg && cmsg->cmsg_level == SOL_SOCKET &&
	    cmsg->cmsg_type == SCM_RIGHTS &&
	    cmsg->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(cmsg), sizeof(*fd));
	if (n >= (ssize_t)sizeof(*message) && !(msg.msg_flags & MSG_TRUNC) &&
	    message->magic == SOFT_MESSAGE_MAGIC) {
		if (payload)
			*bytes = (size_t)n - sizeof(*message);
		return 0;
	}
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return EPIPE;
}
