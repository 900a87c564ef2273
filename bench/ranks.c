/* SPDX-License-Identifier: MIT */
/*
 * The processes of `wreath run`.
 *
 * Each rank leads a process group of its own, so that what it starts can be
 * ended with it; a group is signalled only while its leader is unreaped, when
 * its number cannot be anybody else's.  A guard process sees the launcher's
 * own death by the end of a pipe, and then ends the groups.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/run.h"
#include "boot/boot.h"

extern char **environ;

struct guard {
	pid_t pid;
	int fd; /* the end whose closing wakes the guard */
	size_t bytes;
	/*
	 * [n] groups, 0: none.  In shared memory; the closing of @fd orders
	 * the launcher's stores before the guard's loads.
	 */
	_Atomic pid_t *group;
};

static int fail(const char *what)
{
	fprintf(stderr, "wreath run: cannot %s: %s\n", what, strerror(errno));
	return BENCH_FAILED;
}

static _Noreturn void guard_watch(const struct guard *guard, int n, int fd)
{
	char byte;
	int i;

	for (i = 0; i < 3; i++)
		close(i);
	setpgid(0, 0);
	while (read(fd, &byte, 1) < 0 && errno == EINTR)
		;
	for (i = 0; i < n; i++) {
		pid_t group = guard->group[i];

		if (group > 1)
			kill(-group, SIGKILL);
	}
	_exit(0);
}

static int guard_start(int n, struct guard **out)
{
	struct guard *guard = calloc(1, sizeof(*guard));
	int fd[2];

	if (!guard)
		return fail("start");
	guard->bytes = (size_t)n * sizeof(pid_t);
	guard->group = mmap(NULL, guard->bytes, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (guard->group == MAP_FAILED)
		goto err_free;
	if (pipe2(fd, O_CLOEXEC))
		goto err_unmap;
	guard->pid = fork();
	if (guard->pid < 0)
		goto err_close;
	if (!guard->pid) {
		close(fd[1]);
		guard_watch(guard, n, fd[0]);
	}
	close(fd[0]);
	guard->fd = fd[1];
	*out = guard;
	return 0;

err_close:
	close(fd[0]);
	close(fd[1]);
err_unmap:
	munmap(guard->group, guard->bytes);
err_free:
	free(guard);
	return fail("start the guard");
}

static void guard_stop(struct guard *guard)
{
	close(guard->fd);
	while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
		;
	munmap(guard->group, guard->bytes);
	free(guard);
}

static bool is_ours(const struct ranks_args *args, const char *setting)
{
	return !strncmp(setting, "WREATH_RANK=", 12) ||
	       (args->nodes && !strncmp(setting, "WREATH_NODE=", 12)) ||
	       !strncmp(setting, "WREATH_N_RANKS=", 15) ||
	       !strncmp(setting, "WREATH_COMM_ID=", 15);
}

/*
 * The environment of the ranks, all but what differs between them, whose place
 * is the first, WREATH_RANK and perhaps WREATH_NODE: made before fork(), since
 * a child of a process with threads must not allocate.
 */
static char **environment_new(const struct ranks_args *args,
			      const struct wreath_unique_id *id)
{
	char hex[2 * sizeof(id->bytes) + 1];
	size_t length = 0;
	size_t at = args->nodes ? 2 : 1;
	char **env;
	size_t i;

	while (environ[length])
		length++;
	env = calloc(length + 5, sizeof(*env));
	if (!env)
		return NULL;
	for (i = 0; i < length; i++) {
		if (!is_ours(args, environ[i]))
			env[at++] = environ[i];
	}
	for (i = 0; i < sizeof(id->bytes); i++)
		snprintf(hex + 2 * i, 3, "%02x", id->bytes[i]);
	if (asprintf(&env[at], "WREATH_COMM_ID=%s", hex) < 0 ||
	    asprintf(&env[at + 1], "WREATH_N_RANKS=%d", args->n) < 0) {
		free(env);
		return NULL;
	}
	return env;
}

static void environment_free(char **env)
{
	size_t n = 2;

	while (env[n])
		n++;
	free(env[n - 1]);
	free(env[n - 2]);
	free(env);
}

/* In the child: no call here may allocate or lock. */
static _Noreturn void become(const struct ranks_args *args, int rank,
			     char **env, int out, int err, int report)
{
	int stdin_fd;
	int error;

	setpgid(0, 0);
	/*
	 * A terminal would stop a background group that reads from it, and no
	 * two ranks can share an input: the first gets it, if it is a file or
	 * a pipe.
	 */
	if (rank || isatty(0)) {
		stdin_fd = open("/dev/null", O_RDONLY);
		if (stdin_fd >= 0)
			dup2(stdin_fd, 0);
		if (stdin_fd > 2)
			close(stdin_fd);
	}
	if (dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(127);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, args->mask, NULL);
	execvpe(args->argv[0], args->argv, env);
	error = errno;
	if (write(report, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

static struct relay *relay_new(const struct ranks_args *args, int rank,
			       int from, int to)
{
	struct relay *relay = malloc(sizeof(*relay));

	if (!relay)
		return NULL;
	relay->from = from;
	relay->to = to;
	relay->rank = args->no_prefix ? -1 : rank;
	relay->length = 0;
	fcntl(from, F_SETFL, O_NONBLOCK);
	return relay;
}

static int start_one(const struct ranks_args *args, struct ranks *ranks, int i,
		     char **env, int report)
{
	struct rank *rank = &ranks->rank[i];
	pid_t launcher = getpid();
	char setting[32], node[32];
	int out[2];
	int err[2];

	if (pipe2(out, O_CLOEXEC))
		return fail("make a pipe");
	if (pipe2(err, O_CLOEXEC)) {
		close(out[0]);
		close(out[1]);
		return fail("make a pipe");
	}
	snprintf(setting, sizeof(setting), "WREATH_RANK=%d", i);
	env[0] = setting;
	if (args->nodes) {
		snprintf(node, sizeof(node), "WREATH_NODE=%d", args->nodes[i]);
		env[1] = node;
	}
	rank->pid = fork();
	if (!rank->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The launcher may have died before that was asked for. */
		if (getppid() != launcher)
			_exit(127);
		become(args, i, env, out[1], err[1], report);
	}
	close(out[1]);
	close(err[1]);
	rank->relay[0] = relay_new(args, i, out[0], STDOUT_FILENO);
	rank->relay[1] = relay_new(args, i, err[0], STDERR_FILENO);
	if (rank->pid < 0) {
		rank->pid = 0;
		return fail("start a process");
	}
	/* Here too, so that the group exists when either side goes on. */
	setpgid(rank->pid, rank->pid);
	ranks->guard->group[i] = rank->pid;
	ranks->n_running++;
	if (!rank->relay[0] || !rank->relay[1])
		return fail("start a process");
	return 0;
}

/* Every rank has become the program when the pipe ends without a word. */
static int check_started(const struct ranks_args *args, int fd)
{
	int error;
	ssize_t n;

	do
		n = read(fd, &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(error))
		return 0;
	fprintf(stderr, "wreath run: cannot run %s: %s\n", args->argv[0],
		strerror(error));
	return error == ENOENT ? 127 : 126;
}

static int start_all(const struct ranks_args *args, struct ranks *ranks,
		     char **env)
{
	int report[2];
	int status = 0;
	int i;

	if (pipe2(report, O_CLOEXEC))
		return fail("make a pipe");
	for (i = 0; i < args->n && !status; i++)
		status = start_one(args, ranks, i, env, report[1]);
	close(report[1]);
	if (!status)
		status = check_started(args, report[0]);
	close(report[0]);
	return status;
}

int ranks_start(const struct ranks_args *args, struct ranks *ranks)
{
	struct wreath_unique_id id;
	int status;
	char **env;

	ranks->n = args->n;
	ranks->rank = calloc((size_t)args->n, sizeof(*ranks->rank));
	if (!ranks->rank)
		return fail("start");
	status = guard_start(args->n, &ranks->guard);
	if (status)
		return status;
	if (boot_root_start("lo", 0, &id)) {
		fprintf(stderr, "wreath run: %s\n", wreath_error_text());
		return BENCH_WREATH;
	}
	env = environment_new(args, &id);
	if (!env)
		return fail("start");
	status = start_all(args, ranks, env);
	environment_free(env);
	return status;
}

struct rank *ranks_reap(struct ranks *ranks)
{
	struct rank *failed = NULL;
	int i;

	for (i = 0; i < ranks->n; i++) {
		struct rank *rank = &ranks->rank[i];
		siginfo_t info = {0};

		if (!rank->pid || rank->is_done)
			continue;
		if (waitid(P_PID, (id_t)rank->pid, &info,
			   WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
			continue;
		rank->is_done = true;
		rank->code = info.si_code;
		rank->status = info.si_status;
		ranks->n_running--;
		if (!failed && (info.si_code != CLD_EXITED || info.si_status))
			failed = rank;
	}
	return failed;
}

void ranks_signal(struct ranks *ranks, int number)
{
	int i;

	for (i = 0; i < ranks->n; i++) {
		if (ranks->rank[i].pid > 1)
			kill(-ranks->rank[i].pid, number);
	}
}

static void relay_free(struct relay *relay)
{
	if (!relay)
		return;
	close(relay->from);
	free(relay);
}

void ranks_free(struct ranks *ranks)
{
	int i;

	if (!ranks->rank)
		return;
	ranks_signal(ranks, SIGKILL);
	for (i = 0; i < ranks->n; i++) {
		struct rank *rank = &ranks->rank[i];

		if (ranks->guard)
			ranks->guard->group[i] = 0;
		while (rank->pid && waitpid(rank->pid, NULL, 0) < 0 &&
		       errno == EINTR)
			;
		relay_free(rank->relay[0]);
		relay_free(rank->relay[1]);
	}
	if (ranks->guard)
		guard_stop(ranks->guard);
	free(ranks->rank);
	ranks->rank = NULL;
}
