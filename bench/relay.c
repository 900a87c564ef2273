/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bench/run.h"

/* Room for a line and its prefix, and for many short ones at once. */
static char out[RELAY_LINE_MAX + 32];
static size_t out_length;

static bool flush(int to)
{
	size_t at = 0;

	while (at < out_length) {
		ssize_t n = write(to, out + at, out_length - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			out_length = 0;
			return false;
		}
		at += (size_t)n;
	}
	out_length = 0;
	return true;
}

static bool put_line(const struct relay *relay, const char *line, size_t length)
{
	if (out_length + length + 32 > sizeof(out) && !flush(relay->to))
		return false;
	if (relay->rank >= 0)
		out_length += (size_t)snprintf(out + out_length, 16, "[%d] ",
					       relay->rank);
	memcpy(out + out_length, line, length);
	out_length += length;
	out[out_length++] = '\n';
	return true;
}

/* Put out the whole lines of the buffer, and the rest too where @all. */
static bool put_lines(struct relay *relay, bool all)
{
	size_t start = 0;
	bool ok = true;

	while (ok && start < relay->length) {
		const char *at = relay->line + start;
		const char *end = memchr(at, '\n', relay->length - start);
		size_t length = end ? (size_t)(end - at)
				    : relay->length - start;

		if (!end && !all && length < sizeof(relay->line))
			break;
		ok = put_line(relay, at, length);
		start += length + (end != NULL);
	}
	memmove(relay->line, relay->line + start, relay->length - start);
	relay->length -= start;
	return flush(relay->to) && ok;
}

enum relay_state relay_carry(struct relay *relay)
{
	for (;;) {
		ssize_t n = read(relay->from, relay->line + relay->length,
				 sizeof(relay->line) - relay->length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return RELAY_OPEN;
		if (n > 0) {
			relay->length += (size_t)n;
			if (!put_lines(relay, false))
				return RELAY_BROKEN;
			continue;
		}
		return put_lines(relay, true) ? RELAY_ENDED : RELAY_BROKEN;
	}
}
