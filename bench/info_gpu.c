/* SPDX-License-Identifier: MIT */
/* wreath info: its part about GPUs. */
#include <stdio.h>

#include "bench/info.h"

static void print_gpu(const struct info_gpu *gpu, int number)
{
	int i;

	if (gpu->error[0]) {
		printf("  GPU %d: %s\n", number, gpu->error);
		return;
	}
	printf("  GPU %d: %s, %s, %.1f GiB, compute capability %d.%d\n", number,
	       gpu->name, gpu->pci, (double)gpu->bytes / (1 << 30), gpu->major,
	       gpu->minor);
	if (gpu->no_kernels[0])
		printf("    folds are staged by the processor: %s\n",
		       gpu->no_kernels);
	for (i = 0; i < gpu->n_ways; i++)
		printf("    %s: %s\n", gpu->ways[i].device, gpu->ways[i].text);
}

void info_print_gpus(const struct info_gpus *gpus)
{
	int i;

	printf("\nGPUs, and how devices reach their memory\n");
	if (gpus->none[0])
		printf("  none: %s\n", gpus->none);
	else if (!gpus->n)
		printf("  none\n");
	for (i = 0; i < gpus->n; i++)
		print_gpu(&gpus->gpus[i], i);
}

static void json_gpu(const struct info_gpu *gpu, int number)
{
	int i;

	printf("{\"gpu\": %d, \"error\": ", number);
	info_json_text(gpu->error);
	printf(", ");
	info_json_pair("name", gpu->name);
	printf(", ");
	info_json_pair("pci", gpu->pci);
	printf(", \"bytes\": %zu, \"major\": %d, \"minor\": %d, "
	       "\"needs_flush\": %s, \"no_kernels\": ", gpu->bytes,
	       gpu->major, gpu->minor, gpu->needs_flush ? "true" : "false");
	info_json_text(gpu->no_kernels);
	printf(", \"devices\": [");
	for (i = 0; i < gpu->n_ways; i++) {
		printf("%s{", i ? ", " : "");
		info_json_pair("name", gpu->ways[i].device);
		printf(", ");
		info_json_pair("reaches", gpu->ways[i].text);
		printf("}");
	}
	printf("]}");
}

void info_json_gpus(const struct info_gpus *gpus)
{
	int i;

	printf("\"gpus\": {\"error\": ");
	info_json_text(gpus->none);
	printf(", \"gpus\": [");
	for (i = 0; i < gpus->n; i++) {
		printf("%s", i ? ", " : "");
		json_gpu(&gpus->gpus[i], i);
	}
	printf("]}");
}
