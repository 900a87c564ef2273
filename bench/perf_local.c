/* SPDX-License-Identifier: MIT */
/*
 * Ranks as processes on this machine.  The parent forks them, serves as the
 * root of their communicator, shows what rank 0 reports, and minds them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/perf_measure.h"
#include "boot/boot.h"
#include "topo/topo.h"

/* How often the parent looks whether a rank has died. */
#define LOOK_MS 50
/*
 * How long ranks may take to end by themselves: the library sees a death
 * within 2 s; an interrupted measurement ends within a block of 0.5 s or the
 * operation under way.
 */
#define GRACE_MS 4000

struct local {
	const struct perf_options *options;
	struct perf_report *report;
	struct perf_page *page;
	size_t page_bytes;
	pid_t *pids; /* [n_procs]; 0: not started, or reaped */
	int n_running;
	int events; /* the pipe from rank 0 */
	int gate;   /* its closing lets the ranks go */
	int status;
	uint64_t kill_ms; /* when those that are left are killed; 0: never */
	bool has_killed;
};

static volatile sig_atomic_t caught;
static volatile sig_atomic_t n_caught;

static void catch(int number)
{
	caught = number;
	n_caught++;
}

/* Rank 0's end of the pipe, or the report itself. */
void perf_emit(const struct perf_sink *sink, const struct perf_event *event)
{
	_Static_assert(sizeof(*event) <= PIPE_BUF, "an event passes whole");

	if (sink->fd < 0) {
		perf_report_event(sink->report, event);
		return;
	}
	/* Whole or not at all; without a parent we die by its signal. */
	while (write(sink->fd, event, sizeof(*event)) < 0 && errno == EINTR)
		;
}

static void *thread(void *arg)
{
	return (void *)(intptr_t)perf_rank(arg);
}

/* All ranks of a process; the first is the process's own thread. */
static int be_process(const struct local *local, int process, int events)
{
	int n = (int)local->options->n_threads;
	struct perf_job *jobs = calloc((size_t)n, sizeof(*jobs));
	pthread_t *threads = calloc((size_t)n, sizeof(*threads));
	void *result;
	int status;
	int i;

	if (!jobs || !threads)
		return BENCH_FAILED;
	for (i = 0; i < n; i++) {
		jobs[i].options = local->options;
		jobs[i].sink.fd = events;
		jobs[i].rank = process * n + i;
		jobs[i].page = local->page;
		if (i && pthread_create(&threads[i], NULL, thread, &jobs[i]))
			return BENCH_FAILED;
	}
	status = perf_rank(&jobs[0]);
	for (i = 1; i < n; i++) {
		pthread_join(threads[i], &result);
		if (!status)
			status = (int)(intptr_t)result;
	}
	free(jobs);
	free(threads);
	return status;
}

static void be_on_node(int node)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", node);
	setenv("WREATH_NODE", text, 1);
}

static _Noreturn void child(const struct local *local, int process,
			    pid_t parent, int events, int gate)
{
	char byte;
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The parent may have died before that was asked for. */
	if (getppid() != parent)
		_exit(BENCH_FAILED);
	/* Ctrl-C goes to all of the terminal's group: the parent decides. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_IGN);
	if (local->options->node_of)
		be_on_node(local->options->node_of[process]);
	/* Else two ranks may share a core while another is idle; but a rank of
	 * overlap has two threads. */
	if (local->options->kind != PERF_OVERLAP &&
	    local->options->n_procs <= local->options->n_cores &&
	    local->options->n_threads == 1)
		topo_bind(process);
	while (read(gate, &byte, 1) < 0 && errno == EINTR)
		;
	close(gate);
	if (!atomic_load(&local->page->has_id))
		_exit(BENCH_FAILED);
	status = be_process(local, process, events);
	fflush(NULL);
	_exit(status);
}

static int fail(const char *what)
{
	fprintf(stderr, "wreath perf: cannot %s: %s\n", what, strerror(errno));
	return BENCH_FAILED;
}

static int page_new(struct local *local)
{
	size_t n = (size_t)(local->options->n_procs *
			    local->options->n_threads);

	local->page_bytes = sizeof(*local->page) +
			    n * PERF_SAMPLES * sizeof(double);
	local->page = mmap(NULL, local->page_bytes, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (local->page == MAP_FAILED)
		return fail("share memory with the ranks");
	return 0;
}

/*
 * Fork first, and start the root's thread after it: a child of a process with
 * threads may do next to nothing.
 */
static int start(struct local *local)
{
	int events[2] = {-1, -1};
	int gate[2] = {-1, -1};
	pid_t parent = getpid();
	int i;

	if (pipe(events) || pipe(gate))
		return fail("make a pipe");
	fflush(NULL);
	for (i = 0; i < local->options->n_procs; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			close(gate[1]);
			return fail("fork a rank");
		}
		if (!pid) {
			close(events[0]);
			close(gate[1]);
			child(local, i, parent, events[1], gate[0]);
		}
		local->pids[i] = pid;
		local->n_running++;
	}
	close(events[1]);
	close(gate[0]);
	local->events = events[0];
	local->gate = gate[1];
	if (boot_root_start("lo", local->options->n_algos, &local->page->id)) {
		fprintf(stderr, "wreath perf: %s\n", wreath_error_text());
		return BENCH_WREATH;
	}
	atomic_store(&local->page->has_id, 1);
	close(local->gate);
	local->gate = -1;
	return 0;
}

static void kill_all(struct local *local)
{
	int i;

	local->has_killed = true;
	for (i = 0; i < local->options->n_procs; i++) {
		if (local->pids[i])
			kill(local->pids[i], SIGKILL);
	}
}

/* The first failure decides what we return; the others follow from it. */
static void take_end(struct local *local, int process, int how)
{
	int first = process * (int)local->options->n_threads;
	int number = WIFSIGNALED(how) ? WTERMSIG(how) : 0;

	local->n_running--;
	if (!number && !WEXITSTATUS(how))
		return;
	atomic_store(&local->page->must_stop, 1);
	if (!local->status)
		local->status = number ? BENCH_FAILED : WEXITSTATUS(how);
	if (!local->kill_ms)
		local->kill_ms = base_now_ns() / 1000000 + GRACE_MS;
	if (!number || local->has_killed || local->report->error[0])
		return;
	snprintf(local->report->error, sizeof(local->report->error),
		 "rank %d (pid %d) was ended by %s", first,
		 (int)local->pids[process], bench_signal_name(number));
	fprintf(stderr, "wreath perf: %s\n", local->report->error);
}

static void reap(struct local *local)
{
	int how;
	int i;

	for (i = 0; i < local->options->n_procs; i++) {
		if (!local->pids[i] ||
		    waitpid(local->pids[i], &how, WNOHANG) <= 0)
			continue;
		take_end(local, i, how);
		local->pids[i] = 0;
	}
}

static void read_event(struct local *local)
{
	struct perf_event event;
	ssize_t n = read(local->events, &event, sizeof(event));

	if (n == (ssize_t)sizeof(event)) {
		perf_report_event(local->report, &event);
	} else if (!n) {
		/* All ranks have gone, or are about to. */
		close(local->events);
		local->events = -1;
	}
}

static void take_signals(struct local *local)
{
	if (!n_caught)
		return;
	if (!local->report->is_interrupted) {
		local->report->is_interrupted = true;
		atomic_store(&local->page->is_interrupted, 1);
		local->kill_ms = base_now_ns() / 1000000 + GRACE_MS;
	}
	/* Asked a second time, we do not wait. */
	if (n_caught > 1)
		local->kill_ms = 1;
}

static void mind(struct local *local)
{
	while (local->n_running || local->events >= 0) {
		struct pollfd fd = {local->events, POLLIN, 0};

		if (poll(&fd, 1, LOOK_MS) > 0)
			read_event(local);
		reap(local);
		take_signals(local);
		if (local->kill_ms &&
		    base_now_ns() / 1000000 >= local->kill_ms)
			kill_all(local);
	}
}

/* What we were started to ignore, as by nohup, stays ignored. */
static void catch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = catch};
	struct sigaction old;
	size_t i;

	for (i = 0; i < base_countof(numbers); i++) {
		if (!sigaction(numbers[i], NULL, &old) &&
		    old.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	}
}

int perf_local(const struct perf_options *options, struct perf_report *report)
{
	struct local local = {.options = options, .report = report,
			      .events = -1, .gate = -1};
	char text[sizeof(report->error)];
	int status;

	local.pids = calloc((size_t)options->n_procs, sizeof(*local.pids));
	if (!local.pids)
		return fail("start");
	if (page_new(&local)) {
		free(local.pids);
		return BENCH_FAILED;
	}
	catch_signals();
	local.status = start(&local);
	if (local.status) {
		local.kill_ms = 1;
		kill_all(&local);
		close(local.gate);
	}
	mind(&local);
	status = perf_failure(local.page, text, sizeof(text));
	if (status && !report->error[0])
		snprintf(report->error, sizeof(report->error), "%s", text);
	/* A rank knows no more than that the library has failed. */
	if (status && local.status == BENCH_WREATH)
		local.status = status;
	munmap(local.page, local.page_bytes);
	free(local.pids);
	return local.status;
}
