/* SPDX-License-Identifier: MIT */
/*
 * Goal: ranks on two machines compute the right thing whatever the network
 * between them does for a while, whichever collective they are in, and are told
 * what happened, on every rank, where it stays away.
 * Method: one rank of two.sh's machines, under torchrun's variables.  It works
 * off the cases it is given; in each, one rank of a machine puts a fault on
 * its interface while all of them make calls of all kinds and sizes and check
 * every element against a model.  Every rank tells its verdict on each case in
 * a line "@ CASE RANK PASS|FAIL SECONDS TEXT".
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/loop/calls.h"

#define HEAL_SECONDS 45.0

struct fault {
	const char *name;
	const char *begin, *end; /* shell commands, by the first rank of b */
	const char *begin_a;	 /* and by the first of a */
	int n_trials;
	size_t bytes;		 /* that a rank has at most */
	bool lasts;		 /* until every rank has failed */
	const char *algo;	 /* of those that have it; NULL: chosen */
};

#define NETEM "tc qdisc replace dev $NETDEV root netem limit 10000 "
#define CLEAN "tc qdisc del dev $NETDEV root"

static const struct fault faults[] = {
	{"none", NULL, NULL, NULL, 60, 256 << 10, false, NULL},
	{"loss_0.1", NETEM "loss 0.1%", CLEAN, NETEM "loss 0.1%", 60,
	 128 << 10, false, NULL},
	{"loss_1", NETEM "loss 1%", CLEAN, NETEM "loss 1%", 40, 64 << 10,
	 false, NULL},
	{"loss_5", NETEM "loss 5%", CLEAN, NETEM "loss 5%", 20, 32 << 10,
	 false, NULL},
	{"delay", NETEM "delay 20ms", CLEAN, NETEM "delay 20ms", 20, 64 << 10,
	 false, NULL},
	{"reorder", NETEM "delay 5ms reorder 75% 50%", CLEAN, NULL, 40,
	 64 << 10, false, NULL},
	{"duplicate", NETEM "duplicate 10%", CLEAN, NETEM "duplicate 10%", 40,
	 64 << 10, false, NULL},
	{"corrupt", NETEM "corrupt 2%", CLEAN, NULL, 40, 64 << 10, false, NULL},
	{"silent_3s", "(" NETEM "loss 100%; sleep 3; " CLEAN ") &", NULL, NULL,
	 20, 32 << 10, false, NULL},
	{"down_3s", "(ip link set $NETDEV down; sleep 3;"
	 " ip link set $NETDEV up) &", NULL, NULL, 20, 32 << 10, false, NULL},
	{"uneven", NULL, NULL, NULL, 40, 128 << 10, false, NULL},
	{"uneven_down_3s", "(ip link set $NETDEV down; sleep 3;"
	 " ip link set $NETDEV up) &", NULL, NULL, 20, 32 << 10, false, NULL},
	{"silent", NETEM "loss 100%", CLEAN, NULL, 1000, 32 << 10, true, NULL},
	{"down", "ip link set $NETDEV down", "ip link set $NETDEV up", NULL,
	 1000, 32 << 10, true, NULL},
	/* So that several kinds of call are under way when it goes. */
	{"flaps", "touch /run/flaps; (for i in 1 2 3; do"
	 " ip link set $NETDEV down; sleep 0.6; ip link set $NETDEV up;"
	 " sleep 1.2; done; rm /run/flaps) &",
	 "while [ -e /run/flaps ]; do sleep 0.1; done", NULL, 110, 32 << 10,
	 false, NULL},
	/* Nothing is wrong, and the two hosts are told apart. */
	{"tree", NULL, NULL, NULL, 30, 64 << 10, false, "tree"},
	{"split-ring", NULL, NULL, NULL, 30, 128 << 10, false, "split-ring"},
	{"halving", NULL, NULL, NULL, 30, 64 << 10, false, "halving"},
	{"uneven_split-ring", NULL, NULL, NULL, 30, 128 << 10, false,
	 "split-ring"},
};

struct run {
	struct ranks ranks; /* what struct rank points to */
	struct rank rank;
	char host;     /* 'a' or 'b' */
	bool is_first; /* of its machine */
	uint64_t state, own; /* the same on all ranks, and the rank's own */
	double start;
	char text[2048];
};

static int number(const char *text)
{
	char *end;
	long value = text ? strtol(text, &end, 10) : -1;

	if (value < 0 || value > 1000 || *end)
		exit(2);
	return (int)value;
}

static void complain(struct run *run, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void complain(struct run *run, const char *fmt, ...)
{
	va_list ap;

	if (*run->text)
		return;
	va_start(ap, fmt);
	vsnprintf(run->text, sizeof(run->text), fmt, ap);
	va_end(ap);
}

static void shell(struct run *run, const char *command)
{
	if (command && system(command))
		complain(run, "this failed: %s", command);
}

/*
 * One call, @only or any, the same on all ranks, checked in full: 0 or an
 * error.
 */
static int try_one(struct run *run, const struct fault *fault, int only)
{
	const struct calls_plan plan = {.bytes = fault->bytes, .only = only};
	struct trial_call call;
	int err;

	calls_draw(&run->rank, &run->state, &plan, &call);
	err = calls_run(&run->rank, &run->own, &call);
	if (err == RANKS_BROKEN) {
		complain(run, "%s", rank_result(&run->rank)->text);
		err = 0;
	}
	return err;
}

static void tell(struct run *run, const struct fault *fault)
{
	printf("@ %s %d %s %.1f %s\n", fault->name, run->rank.rank,
	       *run->text ? "FAIL" : "PASS", ranks_now() - run->start,
	       run->text);
	fflush(stdout);
}

static void survive(struct run *run, const struct fault *fault)
{
	/* Connects all: what a link is to survive is what is connected. */
	int err = try_one(run, fault, ALL_TO_ALL);
	int i;

	if (run->is_first)
		shell(run, run->host == 'b' ? fault->begin : fault->begin_a);
	for (i = 0; i < fault->n_trials && !err && !*run->text; i++)
		err = try_one(run, fault, -1);
	if (err)
		complain(run, "%s: %s", wreath_error_name(err),
			 wreath_error_text());
	if (run->is_first && (run->host == 'b' ? fault->begin : fault->begin_a))
		shell(run, fault->end);
}

/* What the failure of a link must tell, wherever it was seen. */
static void check_words(struct run *run)
{
	static const char *const words[] = {
		"rank ", "(a, pid ", "(b, pid ", "rxe0:1", "10.77.0.1",
		"10.77.0.2", " of rxe0:1", "QP 0x", "worked for", "(operation ",
		" waited ", " within ", "it has counted ",
	};
	const char *text = wreath_error_text();
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strstr(text, words[i]))
			complain(run, "'%s' is not in: %s", words[i], text);
}

/* Files of the host, by which machines without a network keep in step. */
static void await_heal(struct run *run, const struct fault *fault)
{
	char path[512];
	double end = ranks_now() + HEAL_SECONDS;
	FILE *file;

	snprintf(path, sizeof(path), "%s/failed.%s.%d", getenv("VM_OUT"),
		 fault->name, run->rank.rank);
	file = fopen(path, "w");
	if (file)
		fclose(file);
	snprintf(path, sizeof(path), "%s/heal.%s", getenv("VM_OUT"),
		 fault->name);
	while (access(path, F_OK) && ranks_now() < end)
		ranks_sleep_ms(100);
	if (access(path, F_OK))
		complain(run, "other ranks did not fail within %.0f s",
			 HEAL_SECONDS);
}

static void fail_for_good(struct run *run, const struct fault *fault)
{
	double began;
	int err;
	int i;

	err = try_one(run, fault, ALL_REDUCE);
	if (run->host == 'b' && run->is_first)
		shell(run, fault->begin);
	began = ranks_now();
	for (i = 0; i < fault->n_trials && !err && !*run->text; i++) {
		began = ranks_now();
		err = try_one(run, fault, ALL_REDUCE);
	}
	if (!err)
		complain(run, "nothing failed");
	else if (ranks_now() - began > 31)
		complain(run, "it took %.1f s: %s", ranks_now() - began,
			 wreath_error_text());
	if (err) {
		printf("rank %d after %.1f s: %s: %s\n", run->rank.rank,
		       ranks_now() - began, wreath_error_name(err),
		       wreath_error_text());
		check_words(run);
	}
	fflush(stdout);
	wreath_comm_destroy(run->rank.comm);
	run->rank.comm = NULL;
	await_heal(run, fault);
	if (run->host == 'b' && run->is_first)
		shell(run, fault->end);
}

/* Settings are read where a communicator is made. */
static void set_algo(struct run *run, const char *algo)
{
	const char *was = getenv("WREATH_ALGO");

	if (!strcmp(algo, was ? was : "auto"))
		return;
	if (wreath_comm_destroy(run->rank.comm))
		complain(run, "the end: %s", wreath_error_text());
	run->rank.comm = NULL;
	setenv("WREATH_ALGO", algo, 1);
}

static void run_case(struct run *run, const struct fault *fault)
{
	int err = 0;

	run->start = ranks_now();
	run->state = (uint64_t)(fault - faults) + 77;
	run->own = run->state + 1 + (uint64_t)run->rank.rank;
	*run->text = 0;
	set_algo(run, fault->algo ? fault->algo : "auto");
	if (!run->rank.comm)
		err = wreath_comm_init_env(&run->rank.comm);
	if (err) {
		run->rank.comm = NULL;
		complain(run, "no communicator: %s", wreath_error_text());
	} else if (fault->lasts) {
		fail_for_good(run, fault);
	} else {
		survive(run, fault);
	}
	if (*run->text && run->rank.comm) {
		wreath_comm_destroy(run->rank.comm);
		run->rank.comm = NULL;
	}
	tell(run, fault);
}

int main(int argc, char **argv)
{
	struct run run = {
		.rank = {.rank = number(getenv("RANK")),
			 .n_ranks = number(getenv("WORLD_SIZE"))},
	};
	int i;
	size_t k;

	if (argc < 3 || run.rank.n_ranks > CALLS_RANKS)
		return 2;
	alarm(300);
	run.host = argv[1][0];
	run.is_first = number(argv[2]) == 0;
	run.rank.run = &run.ranks;
	run.ranks.shared = calloc(1, sizeof(*run.ranks.shared));
	for (i = 3; i < argc; i++)
		for (k = 0; k < sizeof(faults) / sizeof(faults[0]); k++)
			if (!strcmp(argv[i], faults[k].name))
				run_case(&run, &faults[k]);
	if (run.rank.comm && wreath_comm_destroy(run.rank.comm))
		printf("@ end %d FAIL 0 %s\n", run.rank.rank,
		       wreath_error_text());
	free(run.ranks.shared);
	return 0;
}
