/* SPDX-License-Identifier: MIT */
/* wreath run: start the ranks of a program on this machine, and mind them. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/run.h"

/* How long ranks may take to end after SIGTERM. */
#define END_MS 2000
/* How long to read on when a process that left its group holds a pipe. */
#define DRAIN_MS 200

struct run {
	int64_t n_ranks;
	const char *nodes;
	double timeout_s;
	bool no_prefix;
	struct ranks_args start;
	struct ranks ranks;
	int signals;	   /* a signalfd */
	int status;	   /* of the first that failed; -1: none yet */
	uint64_t limit_ms; /* --timeout's moment; 0: none */
	uint64_t kill_ms;  /* when SIGKILL follows; 0: not ending */
	int n_interrupts;
};

static const struct bench_option options[] = {
	{'n', "ranks", "N", "how many ranks to start, 1 to 1024", BENCH_INT,
	 offsetof(struct run, n_ranks), 1, RANKS_MAX, NULL},
	{0, "nodes", "N|LIST", "pretend to be N nodes, or nodes of so many "
	 "ranks each: 3,5", BENCH_TEXT, offsetof(struct run, nodes), 0, 0,
	 NULL},
	{0, "timeout", "SECONDS", "end all after that time, with status 124",
	 BENCH_NUMBER, offsetof(struct run, timeout_s), 0, 10000000, NULL},
	{0, "no-prefix", NULL, "do not put [RANK] before every line",
	 BENCH_FLAG, offsetof(struct run, no_prefix), 0, 0, NULL},
	{0, NULL, NULL, NULL, BENCH_OTHER, 0, 0, 0, NULL},
};

static const char usage_line[] = "wreath run -n N [options] PROGRAM [WORDS]";
static const char usage_text[] =
	"Starts PROGRAM N times on this machine, as ranks that find each "
	"other by\nwreath_comm_init_env().  Every line that a rank writes is "
	"prefixed with its\nnumber.  When a rank fails the others are ended "
	"by SIGTERM, and by SIGKILL two\nseconds later; the exit status is "
	"that of the first rank that failed, or 128\nplus the signal that "
	"ended it.  SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are\npassed "
	"on; a second SIGINT ends all.";

static uint64_t now_ms(void)
{
	return base_now_ns() / 1000000;
}

/* Numbers for all that may be asked for: the launcher lives once. */
static int take_nodes(const struct bench_args *args, struct run *run)
{
	static int nodes[RANKS_MAX];

	if (bench_nodes(args, run->nodes, run->start.n, nodes))
		return BENCH_USAGE + 1;
	run->start.nodes = nodes;
	return 0;
}

/* 0 to go on, else the exit status plus one. */
static int parse(int argc, char **argv, struct run *run)
{
	struct bench_args args = {"wreath run", options, argc, argv, 0, false};
	const char *value;
	int found = bench_read(&args, run, &value);

	if (found == BENCH_HELP) {
		bench_usage(stdout, usage_line, usage_text, options);
		return BENCH_OK + 1;
	}
	if (found == BENCH_BAD)
		return BENCH_USAGE + 1;
	if (!run->n_ranks || found != BENCH_OPERAND) {
		bench_refuse(&args, run->n_ranks
					    ? "no program to run; --help has "
					      "more"
					    : "-n N is missing: how many "
					      "ranks?");
		return BENCH_USAGE + 1;
	}
	run->start.n = (int)run->n_ranks;
	run->start.no_prefix = run->no_prefix;
	run->start.argv = argv + args.at - 1;
	return run->nodes ? take_nodes(&args, run) : 0;
}

static void end_all(struct run *run, int status)
{
	if (run->status < 0)
		run->status = status;
	if (run->kill_ms)
		return;
	ranks_signal(&run->ranks, SIGTERM);
	run->kill_ms = now_ms() + END_MS;
}

static void carry(struct run *run, struct rank *rank, int i)
{
	struct relay *relay = rank->relay[i];
	enum relay_state state;

	if (!relay)
		return;
	state = relay_carry(relay);
	if (state == RELAY_OPEN)
		return;
	close(relay->from);
	free(relay);
	rank->relay[i] = NULL;
	/* As SIGPIPE would: `wreath run ... | head` ends with head. */
	if (state == RELAY_BROKEN)
		end_all(run, 128 + SIGPIPE);
}

static void report(const struct run *run, const struct rank *rank)
{
	const char *others = run->ranks.n_running ? "; ending the others" : "";
	int number = (int)(rank - run->ranks.rank);

	if (rank->code == CLD_EXITED)
		fprintf(stderr, "wreath run: rank %d (pid %d) exited with "
				"code %d%s\n", number, (int)rank->pid,
			rank->status, others);
	else
		fprintf(stderr, "wreath run: rank %d (pid %d) was ended by "
				"%s%s%s\n", number, (int)rank->pid,
			bench_signal_name(rank->status),
			rank->code == CLD_DUMPED ? " (core dumped)" : "",
			others);
}

static void reap(struct run *run)
{
	struct rank *failed = ranks_reap(&run->ranks);

	if (!failed)
		return;
	/* What it wrote last explains the failure: first things first. */
	carry(run, failed, 0);
	carry(run, failed, 1);
	if (run->status < 0)
		report(run, failed);
	end_all(run, failed->code == CLD_EXITED ? failed->status
						: 128 + failed->status);
}

static void take_signal(struct run *run)
{
	struct signalfd_siginfo info;

	if (read(run->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD) {
		reap(run);
	} else if (info.ssi_signo == SIGINT && run->n_interrupts++) {
		fprintf(stderr, "wreath run: interrupted again; ending all\n");
		end_all(run, 128 + SIGINT);
	} else {
		ranks_signal(&run->ranks, (int)info.ssi_signo);
	}
}

/* Act on what is due; how long poll() may wait, or -1. */
static int check_time(struct run *run)
{
	uint64_t now = now_ms();
	uint64_t next = 0;

	if (run->limit_ms && now >= run->limit_ms) {
		run->limit_ms = 0;
		fprintf(stderr, "wreath run: %g s are over; ending all\n",
			run->timeout_s);
		end_all(run, 124);
	}
	if (run->kill_ms && now >= run->kill_ms) {
		ranks_signal(&run->ranks, SIGKILL);
		/* Once more, should one be forking just then. */
		run->kill_ms = now + END_MS;
	}
	if (run->limit_ms)
		next = run->limit_ms;
	if (run->kill_ms && (!next || run->kill_ms < next))
		next = run->kill_ms;
	if (!next)
		return -1;
	return next - now > 1000000 ? 1000000 : (int)(next - now) + 1;
}

static int fill(struct run *run, struct pollfd *fds)
{
	int n = 1;
	int i;

	fds[0].fd = run->signals;
	fds[0].events = POLLIN;
	fds[0].revents = 0;
	for (i = 0; i < 2 * run->ranks.n; i++) {
		struct relay *relay = run->ranks.rank[i / 2].relay[i % 2];

		if (!relay)
			continue;
		fds[n].fd = relay->from;
		fds[n].events = POLLIN;
		n++;
	}
	return n;
}

static void carry_all(struct run *run)
{
	int i;

	for (i = 0; i < 2 * run->ranks.n; i++)
		carry(run, &run->ranks.rank[i / 2], i % 2);
}

static void mind(struct run *run, struct pollfd *fds)
{
	uint64_t deadline;
	int n;

	while (run->ranks.n_running) {
		int wait_ms = check_time(run);

		poll(fds, (nfds_t)fill(run, fds), wait_ms);
		if (fds[0].revents)
			take_signal(run);
		carry_all(run);
	}
	ranks_signal(&run->ranks, SIGKILL);
	deadline = now_ms() + DRAIN_MS;
	for (n = fill(run, fds); n > 1 && now_ms() < deadline;
	     n = fill(run, fds)) {
		poll(fds + 1, (nfds_t)n - 1, DRAIN_MS / 10);
		carry_all(run);
	}
}

/* Two pipes a rank; what the ranks inherit is their own affair. */
static void raise_limit(int n)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) ||
	    limit.rlim_cur >= (rlim_t)n * 2 + 64)
		return;
	limit.rlim_cur = limit.rlim_max < (rlim_t)n * 2 + 64
				 ? limit.rlim_max
				 : (rlim_t)n * 2 + 64;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int run_main(int argc, char **argv)
{
	struct run run = {.status = -1};
	struct pollfd *fds;
	sigset_t mask, old;
	int status = parse(argc, argv, &run);

	if (status)
		return status - 1;
	/* Before the root's thread starts: it must not take signals either. */
	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGHUP);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGUSR2);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, &old);
	signal(SIGPIPE, SIG_IGN);
	run.signals = signalfd(-1, &mask, SFD_CLOEXEC);
	raise_limit(run.start.n);
	run.start.mask = &old;
	fds = calloc(2 * (size_t)run.start.n + 1, sizeof(*fds));
	if (!fds || run.signals < 0) {
		perror("wreath run: cannot start");
		free(fds);
		return BENCH_FAILED;
	}
	if (run.timeout_s > 0)
		run.limit_ms = now_ms() + (uint64_t)(run.timeout_s * 1000);
	status = ranks_start(&run.start, &run.ranks);
	if (!status) {
		mind(&run, fds);
		status = run.status < 0 ? BENCH_OK : run.status;
	}
	ranks_free(&run.ranks);
	free(fds);
	close(run.signals);
	return status;
}
