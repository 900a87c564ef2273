/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <netdb.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "discover.h"
#include "local.h"
#include "root.h"
#include "sock.h"

/* MASTER_PORT itself is torch's; the root takes the first free one behind. */
#define N_PORTS 16

struct torchrun {
	const char *addr;
	int port;
	int restart;
	bool is_local;
	unsigned int n_th; /* communicator of this process, from 1 */
	struct boot_local_key key;
};

static bool is_loopback(const struct boot_addr *addr)
{
	static const unsigned char loopback6[16] = {[15] = 1};

	if (addr->family == 4)
		return addr->ip[0] == 127;
	return !memcmp(addr->ip, loopback6, sizeof(loopback6));
}

/* The master's addresses, port 0; their number, or an error. */
static int resolve(const char *host, struct boot_addr *out, int max)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *list, *at;
	int n = 0;
	int err = getaddrinfo(host, NULL, &hints, &list);

	if (err)
		return base_error(WREATH_EINVAL,
				  "MASTER_ADDR='%.128s' is no host that this "
				  "one can find: %s",
				  host, gai_strerror(err));
	for (at = list; at && n < max; at = at->ai_next)
		n += boot_addr_from_sock(at->ai_addr, &out[n]);
	freeaddrinfo(list);
	return n ? n
		 : base_error(WREATH_EINVAL,
			      "MASTER_ADDR='%.128s' has no "
			      "IP address",
			      host);
}

/*
 * No better than the words it is made of: who knows run id, address and port
 * can make the same one.  Others on the network should not be able to; where
 * that is not enough, WREATH_COMM_ID carries a true secret.
 */
static void derive_secret(const struct torchrun *torchrun,
			  unsigned char secret[BOOT_SECRET_BYTES])
{
	char words[640];
	int n = snprintf(words, sizeof(words), "wreath secret 1|%s",
			 torchrun->key.words);

	_Static_assert(crypto_hash_sha256_BYTES == BOOT_SECRET_BYTES,
		       "the hash is the secret");
	crypto_hash_sha256(secret, (const unsigned char *)words,
			   base_min_size((size_t)n, sizeof(words) - 1));
}

static int first_port(const struct torchrun *torchrun)
{
	return torchrun->port + N_PORTS <= 65535 ? torchrun->port + 1
						 : torchrun->port - N_PORTS;
}

static int serve(const struct base_env *env, const struct torchrun *torchrun,
		 struct boot_addr *addrs, int n_addrs,
		 const unsigned char *secret, struct boot_place *place)
{
	struct boot_root_args args = {
		.addrs = addrs,
		.n_addrs = n_addrs,
		.n_ports = N_PORTS,
		.n_rounds = 1,
		.idle_ms = env->value[BASE_ENV_JOIN_TIMEOUT],
		.secret = secret,
	};
	bool all_loopback = true;
	int i;

	for (i = 0; i < n_addrs; i++)
		all_loopback &= is_loopback(&addrs[i]);
	/*
	 * Many hosts call themselves 127.0.1.1; the others call this one by an
	 * address of its network.
	 */
	if (all_loopback) {
		args.n_addrs =
			boot_sock_interface(env->text[BASE_ENV_SOCKET_IFNAME],
					    addrs, BOOT_ID_ADDRS);
		if (args.n_addrs < 0)
			return args.n_addrs;
	}
	for (i = 0; i < args.n_addrs; i++)
		boot_addr_set_port(&addrs[i],
				   (unsigned int)first_port(torchrun));
	return boot_root_serve(&args, &place->id);
}

static int meet_over_network(const struct base_env *env,
			     const struct torchrun *torchrun,
			     struct boot_place *place)
{
	struct boot_addr addrs[BOOT_ID_ADDRS];
	struct boot_id id = {.n_ports = N_PORTS};
	int i, n;

	n = resolve(torchrun->addr, addrs, BOOT_ID_ADDRS);
	if (n < 0)
		return n;
	derive_secret(torchrun, id.secret);
	if (!place->rank) {
		int err = serve(env, torchrun, addrs, n, id.secret, place);

		sodium_memzero(&id, sizeof(id));
		return err;
	}
	id.n_addrs = n;
	for (i = 0; i < n; i++) {
		id.addrs[i] = addrs[i];
		boot_addr_set_port(&id.addrs[i],
				   (unsigned int)first_port(torchrun));
	}
	boot_id_encode(&id, &place->id);
	sodium_memzero(&id, sizeof(id));
	return 0;
}

static int read_all(struct torchrun *torchrun, struct boot_place *place)
{
	static const char launcher[] = "torchrun";
	const char *run_id = base_env_foreign("TORCHELASTIC_RUN_ID");
	int n_local = 0;
	int err = boot_foreign_int(launcher, "WORLD_SIZE", 1, BOOT_MAX_RANKS,
				   &place->n_ranks);

	if (!err)
		err = boot_foreign_int(launcher, "RANK", 0, place->n_ranks - 1,
				       &place->rank);
	if (!err)
		err = boot_foreign_int(launcher, "MASTER_PORT", 1, 65535,
				       &torchrun->port);
	if (!err && base_env_foreign("LOCAL_WORLD_SIZE"))
		err = boot_foreign_int(launcher, "LOCAL_WORLD_SIZE", 1,
				       place->n_ranks, &n_local);
	if (!err && base_env_foreign("TORCHELASTIC_RESTART_COUNT"))
		err = boot_foreign_int(launcher, "TORCHELASTIC_RESTART_COUNT",
				       0, INT32_MAX, &torchrun->restart);
	if (err)
		return err;
	torchrun->addr = base_env_foreign("MASTER_ADDR");
	if (!torchrun->addr || !torchrun->addr[0])
		return base_error(WREATH_EINVAL, "this looks like torchrun, "
						 "but MASTER_ADDR is not set");
	torchrun->is_local =
		n_local ? n_local == place->n_ranks
			: !strncmp(torchrun->addr, "127.", 4) ||
				  !strcmp(torchrun->addr, "::1") ||
				  !strcmp(torchrun->addr, "localhost");
	torchrun->key.launcher = launcher;
	snprintf(torchrun->key.words, sizeof(torchrun->key.words),
		 "%.128s|%.256s|%d|%d|%u", run_id ? run_id : "", torchrun->addr,
		 torchrun->port, torchrun->restart, torchrun->n_th);
	return 0;
}

int boot_discover_torchrun(const struct base_env *env, struct boot_place *place)
{
	/* Communicators are made in the same order on every rank. */
	static _Atomic unsigned int n_made;
	struct torchrun torchrun = {0};
	int err;

	if (!base_env_foreign("RANK") && !base_env_foreign("WORLD_SIZE"))
		return BOOT_NOT_THIS;
	torchrun.n_th = atomic_fetch_add(&n_made, 1) + 1;
	err = read_all(&torchrun, place);
	if (err)
		return err;
	snprintf(place->found_by, sizeof(place->found_by), "torchrun (%s)",
		 torchrun.is_local ? "this host" : "several hosts");
	if (place->n_ranks == 1)
		return 0;
	return torchrun.is_local ? boot_local_meet(env, &torchrun.key, place)
				 : meet_over_network(env, &torchrun, place);
}
