/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "soft/maps.h"

/* A line of /proc/self/maps up to its file's name. */
struct line {
	uint64_t start, end, offset, dev, ino;
	char rights[4];
};

/* Reads lines; returns each one's beginning, the rest is dropped. */
struct reader {
	int fd;
	size_t at, n;
	char buf[4096];
};

static int next_char(struct reader *r)
{
	ssize_t n;

	if (r->at == r->n) {
		do {
			n = read(r->fd, r->buf, sizeof(r->buf));
		} while (n < 0 && errno == EINTR);
		if (n <= 0)
			return -1;
		r->at = 0;
		r->n = (size_t)n;
	}
	return (unsigned char)r->buf[r->at++];
}

/* "55d0-55f0 r-xp 00002000 fd:01 1234   /bin/x" */
static bool next_line(struct reader *r, struct line *line)
{
	char text[128];
	uint64_t major_no, minor_no;
	size_t n = 0;
	char *at;
	int ch;

	while ((ch = next_char(r)) >= 0 && ch != '\n') {
		if (n < sizeof(text) - 1)
			text[n++] = (char)ch;
	}
	if (ch < 0)
		return false;
	text[n] = 0;
	line->start = strtoull(text, &at, 16);
	line->end = strtoull(at + (*at == '-'), &at, 16);
	if (strlen(at) < 6)
		return false;
	memcpy(line->rights, at + 1, 4);
	line->offset = strtoull(at + 6, &at, 16);
	major_no = strtoull(at, &at, 16);
	minor_no = strtoull(at + (*at == ':'), &at, 16);
	line->dev = makedev((unsigned int)major_no, (unsigned int)minor_no);
	line->ino = strtoull(at, NULL, 10);
	return true;
}

static bool reader_open(struct reader *r)
{
	r->at = 0;
	r->n = 0;
	r->fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	return r->fd >= 0;
}

bool soft_maps_check(uint64_t addr, uint64_t bytes, bool must_write)
{
	struct reader r;
	struct line line;
	uint64_t end = addr + bytes;

	if (!reader_open(&r))
		return true;
	while (addr < end && next_line(&r, &line) && line.start <= addr) {
		if (line.end <= addr)
			continue;
		if (line.rights[0] != 'r' ||
		    (must_write && line.rights[1] != 'w'))
			break;
		addr = line.end;
	}
	close(r.fd);
	return addr >= end;
}

bool soft_maps_is_file(uint64_t addr, uint64_t bytes,
		       const struct soft_maps_file *file)
{
	struct reader r;
	struct line line;
	uint64_t end = addr + bytes;
	uint64_t offset = file->offset;

	if (!reader_open(&r))
		return false;
	while (addr < end && next_line(&r, &line) && line.start <= addr) {
		if (line.end <= addr)
			continue;
		if (line.dev != file->dev || line.ino != file->ino ||
		    line.rights[0] != 'r' || line.rights[1] != 'w' ||
		    line.rights[3] != 's' ||
		    line.offset + (addr - line.start) != offset)
			break;
		offset += line.end - addr;
		addr = line.end;
	}
	close(r.fd);
	return addr >= end;
}
