/* SPDX-License-Identifier: MIT */
/* What the user reads: lines on stderr, and the sentence of a failure. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nccl/inner.h"

static _Atomic int log_level = NCCL_WARN;

/* The last failure of the process: NCCL has one for all threads. */
static struct {
	pthread_mutex_t lock;
	char text[2048];
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

void nccl_log_level_set(enum nccl_level level)
{
	atomic_store(&log_level, (int)level);
}

enum nccl_level nccl_log_level(void)
{
	return (enum nccl_level)atomic_load(&log_level);
}

static void write_line(enum nccl_level level, const char *text)
{
	static const char *const words[] = {"", "error", "warn", "info"};
	char line[2304];
	int n = snprintf(line, sizeof(line), "wreath-nccl: [%d] %s: %s\n",
			 (int)getpid(), words[level], text);

	if (n >= (int)sizeof(line)) {
		n = (int)sizeof(line) - 1;
		line[n - 1] = '\n';
	}
	/* One write a line; where stderr is closed there is nobody to tell. */
	if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

void nccl_log(enum nccl_level level, const char *fmt, ...)
{
	char text[2048];
	va_list args;

	if (level > nccl_log_level())
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	write_line(level, text);
}

static __thread char own_text[sizeof(last.text)];

void nccl_keep(const char *text)
{
	if (text != own_text)
		snprintf(own_text, sizeof(own_text), "%s", text);
	pthread_mutex_lock(&last.lock);
	memcpy(last.text, own_text, sizeof(last.text));
	pthread_mutex_unlock(&last.lock);
}

const char *nccl_own_text(void)
{
	return own_text;
}

ncclResult_t nccl_fail(ncclResult_t result, const char *fmt, ...)
{
	char text[2048];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	nccl_keep(text);
	if (nccl_log_level() >= NCCL_INFO)
		write_line(NCCL_INFO, text);
	return result;
}

const char *nccl_last_text(void)
{
	static __thread char text[sizeof(last.text)];

	pthread_mutex_lock(&last.lock);
	memcpy(text, last.text, sizeof(text));
	pthread_mutex_unlock(&last.lock);
	return text;
}

ncclResult_t nccl_result_of(int error)
{
	switch (error) {
	case WREATH_OK:
		return ncclSuccess;
	case WREATH_EINVAL:
		return ncclInvalidArgument;
	case WREATH_EAGAIN:
		return ncclInProgress;
	case WREATH_EUNSUP:
	case WREATH_EMISMATCH:
		return ncclInvalidUsage;
	/* What another rank did, or did not do. */
	case WREATH_EPEER:
	case WREATH_ETIMEOUT:
	case WREATH_EABORTED:
		return ncclRemoteError;
	case WREATH_ENOMEM:
	case WREATH_ENET:
	case WREATH_EDEVICE:
		return ncclSystemError;
	default:
		return ncclInternalError;
	}
}

ncclResult_t nccl_result(int error, const char *function)
{
	if (!error)
		return ncclSuccess;
	return nccl_fail(nccl_result_of(error), "%s: %s: %s", function,
			 wreath_error_name(error), wreath_error_text());
}
