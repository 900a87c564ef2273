/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>
#include <sys/epoll.h>

#include "auth.h"
#include "root.h"
#include "round.h"
#include "sock.h"
#include "thread.h"

/*
 * Connections that have not proved anything yet.  Real ranks are in this state
 * for a round trip; 128 of them cover a burst, and bound what strangers hold.
 */
#define N_GUESTS 128

/* How many are let in before those that are in are looked at again. */
#define ACCEPTS_A_TURN 32

enum kind { LISTENER, GUEST, MEMBER };

struct guest {
	int fd; /* -1: free */
	struct boot_auth auth;
	size_t have;
	unsigned char in[BOOT_HEAD_BYTES + sizeof(struct boot_join_wire)];
};

struct root {
	unsigned char secret[BOOT_SECRET_BYTES];
	int listeners[BOOT_ID_ADDRS];
	int n_listeners;
	int epoll;
	int n_rounds;
	int n_made;
	uint64_t idle_ns;
	uint64_t last_ns; /* when the last rank came */
	struct boot_round round;
	struct guest guests[N_GUESTS];
};

static int watch(struct root *root, enum kind kind, int i, int fd,
		 uint32_t events, int how)
{
	struct epoll_event event = {
		.events = events,
		.data.u64 = (uint64_t)kind << 32 | (uint32_t)i,
	};

	return epoll_ctl(root->epoll, how, fd, &event) ? -errno : 0;
}

/*
 * The seat for one more connection.  When all are taken, the oldest of those
 * that have not even said hello goes, then the oldest that has; who has
 * proved itself stays.
 */
static struct guest *find_seat(struct root *root)
{
	struct guest *oldest[2] = {NULL, NULL};
	int i;

	for (i = 0; i < N_GUESTS; i++) {
		struct guest *guest = &root->guests[i];
		bool promising = boot_auth_is_promising(&guest->auth);

		if (guest->fd < 0)
			return guest;
		if (guest->auth.state == BOOT_AUTH_DONE)
			continue;
		if (!oldest[promising] ||
		    guest->auth.deadline_ns <
			    oldest[promising]->auth.deadline_ns)
			oldest[promising] = guest;
	}
	return oldest[0] ? oldest[0] : oldest[1];
}

static void serve_guest(struct root *root, struct guest *guest);

static void let_in(struct root *root, int listener)
{
	static const unsigned char no_token[BOOT_TOKEN_BYTES];
	int n;

	for (n = 0; n < ACCEPTS_A_TURN; n++) {
		struct guest *guest;
		int fd = boot_sock_accept(listener);

		if (fd == -EMFILE || fd == -ENFILE) {
			/* A seat given up is a descriptor won. */
			guest = find_seat(root);
			if (guest && guest->fd >= 0)
				boot_sock_close(&guest->fd);
			else
				poll(NULL, 0, 10);
			return;
		}
		if (fd < 0)
			return;
		guest = find_seat(root);
		if (!guest) {
			boot_sock_close(&fd);
			continue;
		}
		boot_sock_close(&guest->fd);
		guest->have = 0;
		boot_sock_tune(fd, BOOT_AUTH_MS);
		boot_auth_server(&guest->auth, fd, BOOT_TO_ROOT, no_token);
		if (watch(root, GUEST, (int)(guest - root->guests), fd, EPOLLIN,
			  EPOLL_CTL_ADD))
			boot_sock_close(&fd);
		guest->fd = fd;
		/* Who has said hello by now is not the first to be evicted. */
		serve_guest(root, guest);
	}
}

static bool parse_join(const struct guest *guest, struct boot_join_wire *join)
{
	struct boot_head head;

	if (!boot_head_decode(guest->in, &head) || head.type != BOOT_JOIN ||
	    head.bytes != sizeof(*join))
		return false;
	memcpy(join, guest->in + BOOT_HEAD_BYTES, sizeof(*join));
	join->version = le32toh(join->version);
	join->rank = le32toh(join->rank);
	join->n_ranks = le32toh(join->n_ranks);
	join->pid = le32toh(join->pid);
	join->timeout_ms = le32toh(join->timeout_ms);
	boot_text_clean(join->host, sizeof(join->host));
	boot_text_clean(join->config, sizeof(join->config));
	return true;
}

static void admit(struct root *root, struct guest *guest)
{
	struct boot_join_wire join;
	enum boot_verdict verdict;
	int fd = guest->fd;

	if (!parse_join(guest, &join)) {
		boot_sock_close(&guest->fd);
		return;
	}
	guest->fd = -1;
	root->last_ns = base_now_ns();
	/* Before it is the round's: afterwards it may be closed already. */
	if (watch(root, MEMBER, (int)join.rank, fd, EPOLLIN | EPOLLRDHUP,
		  EPOLL_CTL_MOD))
		base_log(BASE_LOG_WARN,
			 "root: rank %u's connection cannot be "
			 "watched",
			 join.rank);
	verdict = boot_round_admit(&root->round, &join, fd);
	root->n_made += verdict == BOOT_COMPLETE;
}

static void serve_guest(struct root *root, struct guest *guest)
{
	ssize_t n = 0;

	if (guest->fd < 0)
		return;
	if (guest->auth.state != BOOT_AUTH_DONE) {
		switch (boot_auth_step(&guest->auth, root->secret)) {
		case BOOT_AUTH_STRANGER:
		case BOOT_AUTH_BAD_PROOF:
			boot_sock_close(&guest->fd);
			return;
		case BOOT_AUTH_SENDING:
		case BOOT_AUTH_READING:
			/*
			 * A challenge of 72 bytes fits the buffer of a fresh
			 * connection: who makes it wait is not one of ours.
			 */
			if (boot_auth_events(&guest->auth) == POLLOUT)
				boot_sock_close(&guest->fd);
			return;
		case BOOT_AUTH_DONE:
			break;
		}
	}
	while (guest->have < sizeof(guest->in)) {
		n = boot_sock_recv(guest->fd, guest->in + guest->have,
				   sizeof(guest->in) - guest->have);
		if (n <= 0)
			break;
		guest->have += (size_t)n;
	}
	if (n < 0)
		boot_sock_close(&guest->fd);
	else if (guest->have == sizeof(guest->in))
		admit(root, guest);
}

/* A member has nothing to say: what can be read is its end, or a breach. */
static void serve_member(struct root *root, int rank)
{
	char byte;

	if (rank >= root->round.n_ranks || root->round.members[rank].fd < 0 ||
	    !boot_sock_recv(root->round.members[rank].fd, &byte, 1))
		return;
	boot_round_lost(&root->round, rank);
}

/* Throw out who is late, and say when to look again. */
static int watch_clocks(struct root *root)
{
	uint64_t next = UINT64_MAX;
	uint64_t now = base_now_ns();
	int i;

	for (i = 0; i < N_GUESTS; i++) {
		struct guest *guest = &root->guests[i];

		if (guest->fd < 0)
			continue;
		if (guest->auth.deadline_ns <= now)
			boot_sock_close(&guest->fd);
		else if (guest->auth.deadline_ns < next)
			next = guest->auth.deadline_ns;
	}
	if (root->round.n_ranks && root->round.deadline_ns <= now)
		boot_round_expire(&root->round);
	if (root->round.n_ranks && root->round.deadline_ns < next)
		next = root->round.deadline_ns;
	else if (!root->round.n_ranks && root->n_rounds &&
		 root->last_ns + root->idle_ns < next)
		next = root->last_ns + root->idle_ns;
	return next == UINT64_MAX ? -1 : boot_sock_ms_left(next);
}

static bool is_over(const struct root *root)
{
	if (!root->n_rounds)
		return false;
	return root->n_made == root->n_rounds ||
	       (!root->round.n_ranks &&
		root->last_ns + root->idle_ns <= base_now_ns());
}

static void root_free(struct root *root)
{
	int i;

	for (i = 0; i < N_GUESTS; i++)
		boot_sock_close(&root->guests[i].fd);
	for (i = 0; i < BOOT_ID_ADDRS; i++)
		boot_sock_close(&root->listeners[i]);
	boot_sock_close(&root->epoll);
	boot_round_release(&root->round);
	sodium_memzero(root->secret, sizeof(root->secret));
	base_free(root);
}

static void *run(void *arg)
{
	struct root *root = arg;
	struct epoll_event events[64];

	while (!is_over(root)) {
		int n = epoll_wait(root->epoll, events, base_countof(events),
				   watch_clocks(root));
		int i;

		/* The rounds' connections first: strangers wait for ranks. */
		for (i = 0; i < n; i++)
			if (events[i].data.u64 >> 32 == MEMBER)
				serve_member(root,
					     (int)(uint32_t)events[i].data.u64);
		for (i = 0; i < n; i++)
			if (events[i].data.u64 >> 32 == GUEST)
				serve_guest(root,
					    &root->guests[(uint32_t)events[i]
								  .data.u64]);
		for (i = 0; i < n; i++)
			if (events[i].data.u64 >> 32 == LISTENER)
				let_in(root,
				       root->listeners[(uint32_t)events[i]
							       .data.u64]);
	}
	root_free(root);
	return NULL;
}

static int listen_all(struct root *root, const struct boot_root_args *args,
		      struct boot_id *id)
{
	char where[BOOT_ADDR_TEXT];
	int fd = -EADDRNOTAVAIL;
	int i;

	for (i = 0; i < args->n_addrs && id->n_addrs < BOOT_ID_ADDRS; i++) {
		struct boot_addr *bound = &id->addrs[id->n_addrs];

		fd = boot_sock_listen(&args->addrs[i], args->n_ports, bound);
		if (fd < 0)
			continue;
		root->listeners[root->n_listeners] = fd;
		if (watch(root, LISTENER, root->n_listeners, fd, EPOLLIN,
			  EPOLL_CTL_ADD))
			break;
		root->n_listeners++;
		id->n_addrs++;
	}
	if (id->n_addrs)
		return 0;
	boot_addr_text(&args->addrs[0], where);
	return base_error(WREATH_ENET, "the root cannot listen at %s: %s",
			  where, strerror(-fd));
}

int boot_root_serve(const struct boot_root_args *args,
		    struct wreath_unique_id *out)
{
	struct boot_id id = {.n_ports = 1};
	struct root *root = base_alloc(1, sizeof(*root));
	int err;
	int i;

	if (!root)
		return WREATH_ENOMEM;
	for (i = 0; i < N_GUESTS; i++)
		root->guests[i].fd = -1;
	for (i = 0; i < BOOT_ID_ADDRS; i++)
		root->listeners[i] = -1;
	if (args->secret)
		memcpy(root->secret, args->secret, sizeof(root->secret));
	else
		base_random(root->secret, sizeof(root->secret));
	memcpy(id.secret, root->secret, sizeof(id.secret));
	root->n_rounds = args->n_rounds;
	root->idle_ns = (uint64_t)args->idle_ms * 1000000;
	root->last_ns = base_now_ns();
	root->epoll = boot_sock_epoll();
	if (root->epoll < 0) {
		err = base_error(WREATH_ENOMEM,
				 "the root got no epoll "
				 "descriptor: %s",
				 strerror(-root->epoll));
		root->epoll = -1;
		goto err_free;
	}
	err = listen_all(root, args, &id);
	if (err)
		goto err_free;
	err = boot_thread_start(run, root, "wreath-root", NULL);
	if (err) {
		err = base_error(WREATH_ENOMEM,
				 "the root's thread did not "
				 "start: %s",
				 strerror(err));
		goto err_free;
	}
	boot_id_encode(&id, out);
	sodium_memzero(&id, sizeof(id));
	return 0;

err_free:
	root_free(root);
	return err;
}
