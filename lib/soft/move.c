/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "soft/exec.h"

/* Into or out of another process's private memory. */
static int move_far(const struct soft_piece *to, uint64_t to_at,
		    const struct soft_piece *from, uint64_t from_at,
		    uint64_t bytes, int pid)
{
	struct iovec near, far;
	ssize_t n;

	while (bytes) {
		const bool is_write = !to->at;
		uint64_t address = is_write ? to->far + to_at
					    : from->far + from_at;

		near.iov_base = is_write ? from->at + from_at : to->at + to_at;
		near.iov_len = bytes;
		far.iov_base = (void *)(uintptr_t)address;
		far.iov_len = bytes;
		n = is_write ? process_vm_writev(pid, &near, 1, &far, 1, 0)
			     : process_vm_readv(pid, &near, 1, &far, 1, 0);
		if (n <= 0)
			return n ? errno : EFAULT;
		to_at += (uint64_t)n;
		from_at += (uint64_t)n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

int soft_move(const struct soft_piece *to, const struct soft_piece *from,
	      uint64_t bytes, int pid)
{
	uint64_t to_at = 0, from_at = 0;

	while (bytes) {
		uint64_t n = to->length - to_at;
		int err;

		if (n > from->length - from_at)
			n = from->length - from_at;
		if (n > bytes)
			n = bytes;
		if (to->at && from->at) {
			soft_copy_lines(to->at + to_at, from->at + from_at, n);
		} else if (n) {
			err = move_far(to, to_at, from, from_at, n, pid);
			if (err)
				return err;
		}
		to_at += n;
		from_at += n;
		bytes -= n;
		if (to_at == to->length) {
			to++;
			to_at = 0;
		}
		if (from_at == from->length) {
			from++;
			from_at = 0;
		}
	}
	return 0;
}
