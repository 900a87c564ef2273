/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "local.h"
#include "sock.h"
#include "thread.h"

/* Who has connected says its rank at once: it is a process of ours. */
#define TURN_MS 500

/* 50 ms each: two seconds. */
#define BIND_TRIES 40

struct giver {
	int listener;
	int n_ranks;
	int n_given;
	uint64_t deadline_ns;
	struct wreath_unique_id id;
	bool given[];
};

socklen_t boot_local_name(const struct boot_local_key *key,
			  struct sockaddr_un *name)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char hex[2 * sizeof(hash) + 1];
	char words[640];
	int n = snprintf(words, sizeof(words), "wreath id 1|%d|%s|%s",
			 (int)geteuid(), key->launcher, key->words);

	crypto_hash_sha256(hash, (const unsigned char *)words,
			   base_min_size((size_t)n, sizeof(words) - 1));
	sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	/* A leading 0: the name is no file, and goes with the socket. */
	n = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1,
		     "wreath-%s", hex);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)n);
}

/* The user at the other end, or -1. */
static int64_t user_of(int fd)
{
	struct ucred cred;
	socklen_t bytes = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes))
		return -1;
	return cred.uid;
}

static void give_one(struct giver *giver, int fd)
{
	uint64_t deadline_ns = base_now_ns() + TURN_MS * UINT64_C(1000000);
	uint32_t rank_le;
	uint32_t rank;

	if (user_of(fd) != (int64_t)geteuid() ||
	    !boot_sock_wait(fd, POLLIN, deadline_ns) ||
	    boot_sock_recv(fd, &rank_le, sizeof(rank_le)) != sizeof(rank_le))
		return;
	rank = le32toh(rank_le);
	if (rank < 1 || rank >= (uint32_t)giver->n_ranks)
		return;
	if (boot_sock_send(fd, &giver->id, sizeof(giver->id)) !=
	    sizeof(giver->id))
		return;
	giver->n_given += !giver->given[rank];
	giver->given[rank] = true;
}

static void *give_all(void *arg)
{
	struct giver *giver = arg;

	while (giver->n_given < giver->n_ranks - 1 &&
	       boot_sock_wait(giver->listener, POLLIN, giver->deadline_ns)) {
		int fd = boot_sock_accept(giver->listener);

		if (fd == -EMFILE || fd == -ENFILE)
			poll(NULL, 0, 10);
		if (fd < 0)
			continue;
		give_one(giver, fd);
		boot_sock_close(&fd);
	}
	boot_sock_close(&giver->listener);
	sodium_memzero(&giver->id, sizeof(giver->id));
	base_free(giver);
	return NULL;
}

/* The name of a job that was killed is free a moment after its rank 0 is. */
static int bind_when_free(int fd, const struct sockaddr_un *name,
			  socklen_t bytes)
{
	int tries;

	for (tries = 0; tries < BIND_TRIES; tries++) {
		if (!bind(fd, (const struct sockaddr *)name, bytes))
			return 0;
		if (errno != EADDRINUSE)
			break;
		poll(NULL, 0, 50);
	}
	return errno;
}

int boot_local_give(const struct boot_local_key *key,
		    const struct wreath_unique_id *id, int n_ranks,
		    int64_t timeout_ms)
{
	struct sockaddr_un name;
	socklen_t bytes = boot_local_name(key, &name);
	struct giver *giver = base_alloc(1, sizeof(*giver) + (size_t)n_ranks);
	int fd, err;

	if (!giver)
		return WREATH_ENOMEM;
	giver->listener = fd = boot_sock_open(AF_UNIX, SOCK_SEQPACKET);
	err = fd < 0 ? -fd : bind_when_free(fd, &name, bytes);
	if (!err && listen(fd, SOMAXCONN))
		err = errno;
	giver->n_ranks = n_ranks;
	giver->id = *id;
	giver->deadline_ns = base_now_ns() + (uint64_t)timeout_ms * 1000000;
	if (!err)
		err = boot_thread_start(give_all, giver, "wreath-id", NULL);
	if (!err)
		return 0;
	boot_sock_close(&giver->listener);
	base_free(giver);
	return base_error(err == EADDRINUSE ? WREATH_EINVAL : WREATH_ENOMEM,
			  "rank 0 (%s) cannot give its id to the other ranks "
			  "of this host: %s%s",
			  key->launcher, strerror(err),
			  err == EADDRINUSE ? "; is there another rank 0 of "
					      "the same job?"
					    : "");
}

/* 0, or a negative errno: -EKEYREJECTED for a socket of another user. */
static int take_once(const struct sockaddr_un *name, socklen_t bytes, int rank,
		     int64_t *user, struct wreath_unique_id *id)
{
	uint64_t deadline_ns = base_now_ns() + TURN_MS * UINT64_C(4000000);
	uint32_t rank_le = htole32((uint32_t)rank);
	int fd = boot_sock_open(AF_UNIX, SOCK_SEQPACKET);
	int err = 0;

	if (fd < 0)
		return fd;
	if (connect(fd, (const struct sockaddr *)name, bytes))
		err = -errno;
	*user = err ? -1 : user_of(fd);
	if (!err && *user != (int64_t)geteuid())
		err = -EKEYREJECTED;
	if (!err &&
	    boot_sock_send(fd, &rank_le, sizeof(rank_le)) != sizeof(rank_le))
		err = -EPIPE;
	if (!err && !boot_sock_wait(fd, POLLIN, deadline_ns))
		err = -ETIMEDOUT;
	if (!err && boot_sock_recv(fd, id, sizeof(*id)) != sizeof(*id))
		err = -EPIPE;
	boot_sock_close(&fd);
	return err;
}

int boot_local_take(const struct boot_local_key *key, int rank,
		    int64_t timeout_ms, struct wreath_unique_id *id)
{
	struct sockaddr_un name;
	socklen_t bytes = boot_local_name(key, &name);
	uint64_t deadline_ns = base_now_ns() + (uint64_t)timeout_ms * 1000000;
	char within[24];
	int64_t user = -1;
	int pause_ms = 2;
	int err;

	for (;;) {
		err = take_once(&name, bytes, rank, &user, id);
		if (!err)
			return 0;
		if (err == -EKEYREJECTED)
			return base_error(WREATH_EINVAL,
					  "rank %d (%s): the socket for the id "
					  "belongs to user %lld, not to user "
					  "%d; run all ranks as one user, or "
					  "set WREATH_COMM_ID",
					  rank, key->launcher, (long long)user,
					  (int)geteuid());
		if (!boot_sock_ms_left(deadline_ns))
			break;
		poll(NULL, 0, pause_ms);
		pause_ms = pause_ms < 50 ? pause_ms * 2 : 50;
	}
	boot_text_ms(timeout_ms, within);
	return base_error(WREATH_ETIMEOUT,
			  "rank %d (%s) got no id from rank 0 within %s (%s): "
			  "is rank 0 running on this host, and has it begun "
			  "this communicator?",
			  rank, key->launcher, within, strerror(-err));
}

int boot_local_meet(const struct base_env *env,
		    const struct boot_local_key *key, struct boot_place *place)
{
	const char *ifname = env->text[BASE_ENV_SOCKET_IFNAME];
	int64_t timeout_ms = env->value[BASE_ENV_JOIN_TIMEOUT];
	int err;

	if (place->n_ranks == 1)
		return 0;
	if (place->rank)
		return boot_local_take(key, place->rank, timeout_ms,
				       &place->id);
	/* Nobody from elsewhere is to come. */
	err = boot_root_start(ifname[0] ? ifname : "lo", 1, &place->id);
	if (err)
		return err;
	return boot_local_give(key, &place->id, place->n_ranks, timeout_ms);
}
