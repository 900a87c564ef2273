/* SPDX-License-Identifier: MIT */
/* Where the roots of ids listen that this process makes. */
#include "root.h"
#include "sock.h"
#include "tree.h"

int boot_root_start(const char *ifname, int n_rounds,
		    struct wreath_unique_id *id)
{
	struct boot_addr addrs[BOOT_ID_ADDRS];
	struct boot_root_args args = {
		.addrs = addrs,
		.n_ports = 1,
		.n_rounds = n_rounds,
	};
	struct base_env *env;

	if (n_rounds < 0)
		return base_error(WREATH_EINVAL,
				  "%d rounds are asked of a "
				  "root, there may be 0 or more",
				  n_rounds);
	env = base_alloc(1, sizeof(*env));
	if (!env)
		return WREATH_ENOMEM;
	args.n_addrs = base_env_load(env);
	args.idle_ms = env->value[BASE_ENV_JOIN_TIMEOUT];
	base_free(env);
	if (!args.n_addrs)
		args.n_addrs =
			boot_sock_interface(ifname, addrs, BOOT_ID_ADDRS);
	if (args.n_addrs < 0)
		return args.n_addrs;
	return boot_root_serve(&args, id);
}

int boot_root_start_beside(const struct boot *boot, int64_t idle_ms,
			   struct wreath_unique_id *id)
{
	struct boot_addr addr = boot->listens_at;
	struct boot_root_args args = {
		.addrs = &addr,
		.n_addrs = 1,
		.n_ports = 1,
		.n_rounds = 1,
		.idle_ms = idle_ms,
	};

	boot_addr_set_port(&addr, 0);
	return boot_root_serve(&args, id);
}
