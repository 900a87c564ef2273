/* SPDX-License-Identifier: MIT */
/*
 * env [FOLDER]: reads the environment as the first call of the library does,
 * with FOLDER for that of the RDMA devices, and prints what wreath will see.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/env.h"

extern char **environ;
void nccl_env_read(void);

int main(int argc, char **argv)
{
	char **at;

	if (argc > 1)
		nccl_devices_at = argv[1];
	nccl_env_read();
	for (at = environ; *at; at++)
		if (!strncmp(*at, "WREATH_", 7))
			puts(*at);
	return 0;
}
