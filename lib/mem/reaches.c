/* SPDX-License-Identifier: MIT */
#include "mem/cuda.h"

bool mem_gpu_reaches(int gpu, int other)
{
	int from, to;
	int reaches = 0;

	if (mem_gpu_count() == 0 || cuda.device_get(&from, gpu) ||
	    cuda.device_get(&to, other))
		return false;
	return gpu == other ||
	       (!cuda.device_reaches(&reaches, from, to) && reaches);
}
