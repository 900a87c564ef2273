/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs/verbs.h"

/*
 * Devices have dozens of counters, each vendor its own; those whose names have
 * one of these words count what should not happen.  The rest is traffic.
 */
static bool tells_of_trouble(const char *name)
{
	static const char *const words[] = {
		"err", "retry", "retrans", "drop", "discard", "down", "out_of",
		"nak", "timeout", "exceed", "duplicate", "overrun", "icrc",
	};
	size_t i;

	for (i = 0; i < base_countof(words); i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}

static bool read_number(const char *path, uint64_t *value)
{
	char text[32];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	char *end;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return end != text && !errno;
}

static void read_folder(const char *folder, const char *kind,
			struct verbs_counters *out)
{
	char path[512];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%.200s/%s", folder, kind);
	dir = opendir(path);
	while (dir && out->n < VERBS_COUNTERS_MAX && (entry = readdir(dir))) {
		const char *name = entry->d_name;

		if (strlen(name) >= sizeof(out->rows[0].name) ||
		    !tells_of_trouble(name))
			continue;
		snprintf(path, sizeof(path), "%.200s/%s/%s", folder, kind,
			 name);
		if (!read_number(path, &out->rows[out->n].value))
			continue;
		snprintf(out->rows[out->n].name, sizeof(out->rows[0].name),
			 "%s", name);
		out->n++;
	}
	if (dir)
		closedir(dir);
}

void verbs_counters_read(const char *folder, struct verbs_counters *out)
{
	out->n = 0;
	read_folder(folder, "counters", out);
	read_folder(folder, "hw_counters", out);
}

void verbs_counters(const char *device, int port, struct verbs_counters *out)
{
	char folder[160];

	out->n = 0;
	/* A name is no path. */
	if (!*device || *device == '.' || strchr(device, '/'))
		return;
	snprintf(folder, sizeof(folder), "/sys/class/infiniband/%.64s/ports/%d",
		 device, port);
	verbs_counters_read(folder, out);
}

static uint64_t value_of(const struct verbs_counters *counters,
			 const char *name)
{
	int i;

	for (i = 0; i < counters->n; i++)
		if (!strcmp(counters->rows[i].name, name))
			return counters->rows[i].value;
	return 0;
}

void verbs_counters_text(const struct verbs_counters *before,
			 const struct verbs_counters *after, char *out,
			 size_t size)
{
	size_t at = 0;
	int i;

	out[0] = 0;
	for (i = 0; i < after->n && at < size; i++) {
		const char *name = after->rows[i].name;
		uint64_t old = value_of(before, name);

		/* A device that was reset counts from 0 again. */
		if (after->rows[i].value <= old)
			continue;
		at += (size_t)snprintf(out + at, size - at, "%s%s %" PRIu64,
				       at ? ", " : "", name,
				       after->rows[i].value - old);
	}
	if (at >= size)
		snprintf(out + size - 4, 4, "...");
}
