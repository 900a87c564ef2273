/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topo/topo.h"

/* FNV-1a, 64 bits: the ids need to differ by accident only. */
static uint64_t hash(uint64_t seed, const void *data, size_t bytes)
{
	const unsigned char *at = data;

	while (bytes--)
		seed = (seed ^ *at++) * 0x100000001b3u;
	return seed;
}

uint64_t topo_host_id(void)
{
	uint64_t id = 0xcbf29ce484222325u;
	uid_t uid = geteuid();
	char boot_id[64] = "";
	struct stat st;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		ssize_t n = read(fd, boot_id, sizeof(boot_id) - 1);

		if (n > 0)
			id = hash(id, boot_id, (size_t)n);
		close(fd);
	}
	if (!stat("/proc/self/ns/net", &st)) {
		id = hash(id, &st.st_dev, sizeof(st.st_dev));
		id = hash(id, &st.st_ino, sizeof(st.st_ino));
	}
	return hash(id, &uid, sizeof(uid));
}

void topo_cores(struct topo_cores *cores)
{
	cpu_set_t set;
	size_t i;

	memset(cores, 0, sizeof(*cores));
	if (sched_getaffinity(0, sizeof(set), &set))
		return; /* More than CPU_SETSIZE cores: the count is moot. */
	for (i = 0; i < TOPO_CORES_MAX && i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			cores->word[i / 64] |= 1ull << i % 64;
}

void topo_cores_add(struct topo_cores *to, const struct topo_cores *from)
{
	size_t i;

	for (i = 0; i < base_countof(to->word); i++)
		to->word[i] |= from->word[i];
}

int topo_cores_count(const struct topo_cores *cores)
{
	int n = 0;
	size_t i;

	for (i = 0; i < base_countof(cores->word); i++)
		n += __builtin_popcountll(cores->word[i]);
	return n ? n : 1;
}

int topo_n_cores(void)
{
	struct topo_cores cores;

	topo_cores(&cores);
	return topo_cores_count(&cores);
}

int topo_bind(int i)
{
	struct topo_cores cores;
	cpu_set_t set;
	size_t core;

	topo_cores(&cores);
	for (core = 0; core < TOPO_CORES_MAX && core < CPU_SETSIZE; core++) {
		if (!(cores.word[core / 64] >> core % 64 & 1) || i--)
			continue;
		CPU_ZERO(&set);
		CPU_SET(core, &set);
		if (!sched_setaffinity(0, sizeof(set), &set))
			return 0;
		break;
	}
	return base_error(WREATH_EINVAL, "no core to bind a process to");
}
