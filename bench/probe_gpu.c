/* SPDX-License-Identifier: MIT */
/* The GPUs of this process, and how devices reach their memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/info.h"
#include "mem/mem.h"
#include "net/net.h"

static void ask_device(const struct verbs_table *table, const char *name,
		       const struct base_env *env, int number,
		       struct info_gpu *gpu)
{
	struct info_way *way = &gpu->ways[gpu->n_ways];
	struct verbs_device *device;

	if (gpu->n_ways == INFO_WAYS_MAX ||
	    verbs_device_open(table, name, &device))
		return;
	gpu->n_ways++;
	snprintf(way->device, sizeof(way->device), "%s", name);
	net_gpu_text(device, number, env, way->text, sizeof(way->text));
	verbs_device_close(device);
}

static void ask_source(int (*get)(const struct verbs_table **out),
		       const struct info_source *source,
		       const struct base_env *env, struct info_gpus *gpus)
{
	const struct verbs_table *table;
	int g, i;

	if (source->error[0] || get(&table))
		return;
	for (i = 0; i < source->n_devices; i++)
		for (g = 0; g < gpus->n && !source->devices[i].error[0]; g++)
			ask_device(table, source->devices[i].name, env, g,
				   &gpus->gpus[g]);
}

/* Compute capabilities have one digit behind the point. */
static void describe(int number, struct info_gpu *gpu)
{
	struct mem_gpu_info info;

	if (mem_gpu_info(number, &info)) {
		snprintf(gpu->error, sizeof(gpu->error), "%s",
			 wreath_error_text());
		return;
	}
	snprintf(gpu->name, sizeof(gpu->name), "%s", info.name);
	snprintf(gpu->pci, sizeof(gpu->pci), "%s", info.pci);
	gpu->bytes = info.bytes;
	gpu->major = info.major;
	gpu->minor = info.minor;
	gpu->needs_flush = info.needs_flush;
	if (!info.has_kernels)
		snprintf(gpu->no_kernels, sizeof(gpu->no_kernels), "%s",
			 info.why);
}

void info_probe_gpus(const struct base_env *env,
		     const struct info_source *ibv,
		     int (*get_ibv)(const struct verbs_table **out),
		     const struct info_source *soft,
		     int (*get_soft)(const struct verbs_table **out),
		     struct info_gpus *gpus)
{
	int i;

	memset(gpus, 0, sizeof(*gpus));
	if (mem_cuda_load()) {
		snprintf(gpus->none, sizeof(gpus->none), "%s",
			 wreath_error_text());
		return;
	}
	gpus->n = mem_gpu_count();
	if (gpus->n > INFO_GPUS_MAX)
		gpus->n = INFO_GPUS_MAX;
	for (i = 0; i < gpus->n; i++)
		describe(i, &gpus->gpus[i]);
	if (!env)
		return;
	ask_source(get_ibv, ibv, env, gpus);
	ask_source(get_soft, soft, env, gpus);
}
