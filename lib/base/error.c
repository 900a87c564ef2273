/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

/* Long enough for both ends of a queue pair, the cause and the remedy. */
static _Thread_local char text[2048];

static _Atomic int log_level = BASE_LOG_WARN;

static const char *const level_names[] = {"off", "error", "warn", "info",
					  "debug"};

static void log_line(enum base_log_level level, const char *line)
{
	char out[2304];
	int n = snprintf(out, sizeof(out), "wreath: [%d] %s: %s\n",
			 (int)getpid(), level_names[level], line);

	if (n >= (int)sizeof(out)) {
		n = sizeof(out) - 1;
		out[n - 1] = '\n';
	}
	/* A log that cannot be written has nobody left to be told. */
	if (write(STDERR_FILENO, out, (size_t)n) < 0)
		return;
}

void base_log_level_set(enum base_log_level level)
{
	atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
}

void base_log(enum base_log_level level, const char *fmt, ...)
{
	char line[2048];
	va_list ap;

	if ((int)level > atomic_load_explicit(&log_level, memory_order_relaxed))
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	log_line(level, line);
}

int base_error(int error, const char *fmt, ...)
{
	char line[sizeof(text)];
	va_list ap;

	/* Through a second buffer: an argument may be the old text. */
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	memcpy(text, line, sizeof(text));
	base_log(BASE_LOG_INFO, "%s: %s", wreath_error_name(error), text);
	return error;
}

int base_error_again(int error, const char *sentence)
{
	if (sentence != text)
		snprintf(text, sizeof(text), "%s", sentence);
	return error;
}

const char *base_error_text(void)
{
	return text;
}

_Noreturn void base_assert_failed(const char *cond, const char *file, int line)
{
	char out[512];

	snprintf(out, sizeof(out),
		 "%s:%d: '%s' does not hold; this is a bug in wreath", file,
		 line, cond);
	log_line(BASE_LOG_ERROR, out);
	abort();
}

const char *wreath_error_name(int error)
{
	switch (error) {
	case WREATH_OK:
		return "WREATH_OK";
	case WREATH_EINVAL:
		return "WREATH_EINVAL";
	case WREATH_ENOMEM:
		return "WREATH_ENOMEM";
	case WREATH_EAGAIN:
		return "WREATH_EAGAIN";
	case WREATH_EUNSUP:
		return "WREATH_EUNSUP";
	case WREATH_EPEER:
		return "WREATH_EPEER";
	case WREATH_ETIMEOUT:
		return "WREATH_ETIMEOUT";
	case WREATH_EMISMATCH:
		return "WREATH_EMISMATCH";
	case WREATH_ENET:
		return "WREATH_ENET";
	case WREATH_EABORTED:
		return "WREATH_EABORTED";
	case WREATH_EDEVICE:
		return "WREATH_EDEVICE";
	}
	return "unknown error";
}

const char *wreath_error_text(void)
{
	return text;
}
