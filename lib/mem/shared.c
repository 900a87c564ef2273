/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mem/mem.h"

int mem_shared_new(size_t bytes, void **out, int *out_fd)
{
	void *ptr;
	int err;
	int fd = memfd_create("wreath", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return base_error(WREATH_ENOMEM,
				  "no descriptor for %zu bytes of shared "
				  "memory: %s%s", bytes, strerror(errno),
				  errno == EMFILE ? "; raise `ulimit -n`" : "");
	if (ftruncate(fd, (off_t)bytes) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		err = base_error(WREATH_ENOMEM,
				 "cannot make %zu bytes of shared memory: %s",
				 bytes, strerror(errno));
		goto err_close;
	}
	ptr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ptr == MAP_FAILED) {
		err = base_error(WREATH_ENOMEM,
				 "cannot map %zu bytes of shared memory: %s",
				 bytes, strerror(errno));
		goto err_close;
	}
	*out = ptr;
	*out_fd = fd;
	return 0;
err_close:
	close(fd);
	return err;
}

void mem_shared_free(void *ptr, size_t bytes, int fd)
{
	if (!ptr)
		return;
	munmap(ptr, bytes);
	close(fd);
}
