/* SPDX-License-Identifier: MIT */
/*
 * PMI-1, the wire protocol of MPICH's process manager and its relatives, over
 * a socket that the process inherits: lines of words, an answer to each.
 *
 * The program may be an MPI program whose library uses the same socket before
 * and after; so nothing is changed on the descriptor, and no more is read than
 * one answer.  Whoever has said "init" must say "finalize" before it ends, or
 * the manager takes it for dead; said early, it would shut out an MPI library
 * that comes later.  So it is said at exit(), unless an MPI library has been
 * started in the process, which then says it by itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "discover.h"
#include "sock.h"
#include "wire.h"

#define LINE_BYTES 1280

static const char launcher[] = "PMI-1";

/* One thread at a time talks to the manager. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
	int process; /* whose "init" it was; 0: nobody's */
	int fd;
	bool is_broken; /* an answer is outstanding: nothing can follow */
	unsigned int n_made;
	char space[256];
} pmi;

/* Caller holds the lock. */
static int say(const char *line)
{
	size_t left = strlen(line);

	while (left) {
		ssize_t n = send(pmi.fd, line, left, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		line += n;
		left -= (size_t)n;
	}
	return 0;
}

/* Caller holds the lock. */
static int hear(char *line, size_t bytes, uint64_t deadline_ns)
{
	size_t have = 0;

	while (have < bytes - 1) {
		ssize_t n;

		if (!boot_sock_wait(pmi.fd, POLLIN, deadline_ns))
			return -ETIMEDOUT;
		n = recv(pmi.fd, line + have, 1, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		if (line[have] == '\n') {
			line[have] = 0;
			return 0;
		}
		have++;
	}
	return -EMSGSIZE;
}

/* The word after "@name=" in @line, which ends at a blank. */
static bool find(const char *line, const char *name, char *out, size_t bytes)
{
	size_t n = strlen(name);

	while (*line) {
		size_t word = strcspn(line, " ");

		if (word > n && !strncmp(line, name, n) && line[n] == '=') {
			snprintf(out, bytes, "%.*s", (int)(word - n - 1),
				 line + n + 1);
			return true;
		}
		line += word;
		line += strspn(line, " ");
	}
	return false;
}

/*
 * Ask, and expect the answer @wanted, with rc=0 where it has one.  Caller
 * holds the lock.
 */
static int ask(const char *question, const char *wanted, char *answer,
	       uint64_t deadline_ns)
{
	char word[64];
	int err = say(question);

	if (!err)
		err = hear(answer, LINE_BYTES, deadline_ns);
	if (err) {
		pmi.is_broken = true;
		return base_error(err == -ETIMEDOUT ? WREATH_ETIMEOUT
						    : WREATH_ENET,
				  "the process manager gave no answer to "
				  "'%.32s' over PMI_FD=%d: %s",
				  question, pmi.fd, strerror(-err));
	}
	if (!find(answer, "cmd", word, sizeof(word)) || strcmp(word, wanted) ||
	    (find(answer, "rc", word, sizeof(word)) && strcmp(word, "0")))
		return base_error(WREATH_ENET,
				  "the process manager answered '%.128s', "
				  "where PMI-1 has '%s'",
				  answer, wanted);
	return 0;
}

/* Caller holds the lock.  Once in a process. */
static int begin(int fd, uint64_t deadline_ns)
{
	char answer[LINE_BYTES];
	int type;
	socklen_t bytes = sizeof(type);
	int err;

	if (pmi.process == (int)getpid())
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) ||
	    type != SOCK_STREAM)
		return base_error(WREATH_EINVAL,
				  "PMI_FD=%d is no connection to a process "
				  "manager; was it closed, or is PMI_FD left "
				  "from another program?",
				  fd);
	memset(&pmi, 0, sizeof(pmi));
	pmi.fd = fd;
	err = ask("cmd=init pmi_version=1 pmi_subversion=1\n",
		  "response_to_init", answer, deadline_ns);
	if (err)
		return err;
	pmi.process = (int)getpid();
	err = ask("cmd=get_my_kvsname\n", "my_kvsname", answer, deadline_ns);
	if (err)
		return err;
	if (!find(answer, "kvsname", pmi.space, sizeof(pmi.space)))
		return base_error(WREATH_ENET,
				  "the process manager named no "
				  "key space: '%.128s'",
				  answer);
	return 0;
}

/* The other ranks wait in the barrier: they must hear of a failure, too. */
static int put(int rank, const struct wreath_unique_id *id, int id_err,
	       uint64_t deadline_ns)
{
	char answer[LINE_BYTES];
	char line[LINE_BYTES];
	char hex[257] = "failed";

	if (rank)
		return 0;
	if (!id_err)
		boot_id_to_hex(id, hex);
	snprintf(line, sizeof(line),
		 "cmd=put kvsname=%s key=wreath-id-%u value=%s\n", pmi.space,
		 pmi.n_made, hex);
	return ask(line, "put_result", answer, deadline_ns);
}

static int get(int rank, struct wreath_unique_id *id, uint64_t deadline_ns)
{
	char answer[LINE_BYTES];
	char line[512];
	char value[300];
	int err;

	if (!rank)
		return 0;
	snprintf(line, sizeof(line), "cmd=get kvsname=%s key=wreath-id-%u\n",
		 pmi.space, pmi.n_made);
	err = ask(line, "get_result", answer, deadline_ns);
	if (err)
		return err;
	if (!find(answer, "value", value, sizeof(value)) ||
	    !strcmp(value, "failed"))
		return base_error(WREATH_EPEER, "rank 0 could not make an id; "
						"its own message says why");
	return boot_id_parse(value, id);
}

/* Caller holds the lock. */
static int exchange(int fd, const struct base_env *env, bool is_local,
		    struct boot_place *place)
{
	const char *ifname = env->text[BASE_ENV_SOCKET_IFNAME];
	int64_t timeout_ms = env->value[BASE_ENV_JOIN_TIMEOUT];
	uint64_t deadline_ns = base_now_ns() + (uint64_t)timeout_ms * 1000000;
	char answer[LINE_BYTES];
	char text[BOOT_TEXT_BYTES];
	int id_err = 0;
	int err;

	if (pmi.is_broken && pmi.process == (int)getpid())
		return base_error(WREATH_ENET,
				  "the process manager did not "
				  "answer earlier: PMI-1 cannot go on");
	err = begin(fd, deadline_ns);
	if (err)
		return err;
	pmi.n_made++;
	if (!place->rank)
		id_err = boot_root_start(!ifname[0] && is_local ? "lo" : ifname,
					 1, &place->id);
	snprintf(text, sizeof(text), "%s", base_error_text());
	err = put(place->rank, &place->id, id_err, deadline_ns);
	if (!err)
		err = ask("cmd=barrier_in\n", "barrier_out", answer,
			  deadline_ns);
	if (!err)
		err = get(place->rank, &place->id, deadline_ns);
	return id_err ? base_error_again(id_err, text) : err;
}

int boot_discover_pmi(const struct base_env *env, struct boot_place *place)
{
	int n_local = 0;
	int fd, err;

	if (!base_env_foreign("PMI_FD") && !base_env_foreign("PMI_RANK") &&
	    !base_env_foreign("PMI_SIZE"))
		return BOOT_NOT_THIS;
	err = boot_foreign_int(launcher, "PMI_SIZE", 1, BOOT_MAX_RANKS,
			       &place->n_ranks);
	if (!err)
		err = boot_foreign_int(launcher, "PMI_RANK", 0,
				       place->n_ranks - 1, &place->rank);
	if (!err)
		err = boot_foreign_int(launcher, "PMI_FD", 0, INT32_MAX, &fd);
	if (!err && base_env_foreign("MPI_LOCALNRANKS"))
		err = boot_foreign_int(launcher, "MPI_LOCALNRANKS", 1,
				       place->n_ranks, &n_local);
	if (err)
		return err;
	snprintf(place->found_by, sizeof(place->found_by), "%s", launcher);
	if (place->n_ranks == 1)
		return 0;
	pthread_mutex_lock(&lock);
	err = exchange(fd, env, n_local == place->n_ranks, place);
	pthread_mutex_unlock(&lock);
	return err;
}

/* An MPI library that was never started says nothing at its end. */
static bool mpi_is_in_charge(void)
{
	int (*initialized)(int *flag);
	int flag = 0;

	*(void **)&initialized = dlsym(RTLD_DEFAULT, "PMPI_Initialized");
	return initialized && !initialized(&flag) && flag;
}

__attribute__((destructor)) static void finalize(void)
{
	char answer[LINE_BYTES];

	if (pmi.process != (int)getpid() || pmi.is_broken || mpi_is_in_charge())
		return;
	if (!say("cmd=finalize\n"))
		hear(answer, sizeof(answer),
		     base_now_ns() + UINT64_C(1000000000));
}
