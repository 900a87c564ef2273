/* SPDX-License-Identifier: MIT */
/*
 * Goal: ranks on two machines compute the right thing whatever the network
 * between them does for a while, and are told what happened, on every rank,
 * where it stays away.
 * Method: one rank of two.sh's machines, under torchrun's variables.  It works
 * off the cases it is given; in each, one rank of a machine puts a fault on
 * its interface while all of them reduce vectors of all sizes and check every
 * element against a model.  Every rank tells its verdict on each case in a
 * line "@ CASE RANK PASS|FAIL SECONDS TEXT".
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/loop/model.h"

#define BYTES_MAX (256 << 10)
#define HEAL_SECONDS 45.0

struct fault {
	const char *name;
	const char *begin, *end; /* shell commands, by the first rank of b */
	const char *begin_a;	 /* and by the first of a */
	int n_trials;
	size_t bytes;		 /* of the largest vector */
	bool lasts;		 /* until every rank has failed */
};

#define NETEM "tc qdisc replace dev $NETDEV root netem limit 10000 "
#define CLEAN "tc qdisc del dev $NETDEV root"

static const struct fault faults[] = {
	{"none", NULL, NULL, NULL, 60, BYTES_MAX, false},
	{"loss_0.1", NETEM "loss 0.1%", CLEAN, NETEM "loss 0.1%", 60,
	 128 << 10, false},
	{"loss_1", NETEM "loss 1%", CLEAN, NETEM "loss 1%", 40, 64 << 10,
	 false},
	{"loss_5", NETEM "loss 5%", CLEAN, NETEM "loss 5%", 20, 32 << 10,
	 false},
	{"delay", NETEM "delay 20ms", CLEAN, NETEM "delay 20ms", 20, 64 << 10,
	 false},
	{"reorder", NETEM "delay 5ms reorder 75% 50%", CLEAN, NULL, 40,
	 64 << 10, false},
	{"duplicate", NETEM "duplicate 10%", CLEAN, NETEM "duplicate 10%", 40,
	 64 << 10, false},
	{"corrupt", NETEM "corrupt 2%", CLEAN, NULL, 40, 64 << 10, false},
	{"silent_3s", "(" NETEM "loss 100%; sleep 3; " CLEAN ") &", NULL, NULL,
	 20, 32 << 10, false},
	{"down_3s", "(ip link set $NETDEV down; sleep 3;"
	 " ip link set $NETDEV up) &", NULL, NULL, 20, 32 << 10, false},
	{"uneven", NULL, NULL, NULL, 40, 128 << 10, false},
	{"uneven_down_3s", "(ip link set $NETDEV down; sleep 3;"
	 " ip link set $NETDEV up) &", NULL, NULL, 20, 32 << 10, false},
	{"silent", NETEM "loss 100%", CLEAN, NULL, 1000, 32 << 10, true},
	{"down", "ip link set $NETDEV down", "ip link set $NETDEV up", NULL,
	 1000, 32 << 10, true},
};

struct run {
	struct wreath_comm *comm;
	int rank, n_ranks;
	char host;     /* 'a' or 'b' */
	bool is_first; /* of its machine */
	uint64_t state;
	char *send, *recv;
	double start;
	char text[2048];
};

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* splitmix64, as in test/loop. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static void pause_100ms(void)
{
	const struct timespec pause = {.tv_nsec = 100000000};

	nanosleep(&pause, NULL);
}

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

/* As many vectors between two powers of two as between any others. */
static size_t draw_count(uint64_t *state, size_t bytes, size_t elem_bytes)
{
	unsigned int bits = 0;
	unsigned int n;

	while ((size_t)2 << bits <= bytes / elem_bytes)
		bits++;
	n = (unsigned int)(draw(state) % (bits + 1));
	return draw(state) % ((size_t)1 << n) + 1;
}

/* One all-reduce, the same on all ranks, checked in full: 0 or an error. */
static int try_one(struct run *run, size_t bytes)
{
	struct model model = {
		.type = (enum wreath_type)(draw(&run->state) % WREATH_N_TYPES),
		.op = (enum wreath_op)(draw(&run->state) % WREATH_N_OPS),
		.kind = MODEL_EXACT,
		.n_ranks = run->n_ranks,
		.seed = draw(&run->state),
	};
	size_t elem_bytes = wreath_type_size(model.type);
	size_t count = draw_count(&run->state, bytes, elem_bytes);
	bool in_place = draw(&run->state) % 2;
	char *send = in_place ? run->recv : run->send;
	char text[256];
	int err;

	memset(run->recv, 0xee, count * elem_bytes);
	model_fill(&model, run->rank, send, count);
	err = wreath_all_reduce(send, run->recv, count, model.type, model.op,
				run->comm, NULL);
	if (err)
		return err;
	if (!model_check(&model, run->recv, count, text))
		complain(run, "%zu elements%s: %s", count,
			 in_place ? " in place" : "", text);
	return 0;
}

static void tell(struct run *run, const struct fault *fault)
{
	printf("@ %s %d %s %.1f %s\n", fault->name, run->rank,
	       *run->text ? "FAIL" : "PASS", now() - run->start, run->text);
	fflush(stdout);
}

static void survive(struct run *run, const struct fault *fault)
{
	int err = 0;
	int i;

	if (run->is_first)
		shell(run, run->host == 'b' ? fault->begin : fault->begin_a);
	for (i = 0; i < fault->n_trials && !err && !*run->text; i++)
		err = try_one(run, fault->bytes);
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
	double end = now() + HEAL_SECONDS;
	FILE *file;

	snprintf(path, sizeof(path), "%s/failed.%s.%d", getenv("VM_OUT"),
		 fault->name, run->rank);
	file = fopen(path, "w");
	if (file)
		fclose(file);
	snprintf(path, sizeof(path), "%s/heal.%s", getenv("VM_OUT"),
		 fault->name);
	while (access(path, F_OK) && now() < end)
		pause_100ms();
	if (access(path, F_OK))
		complain(run, "other ranks did not fail within %.0f s",
			 HEAL_SECONDS);
}

static void fail(struct run *run, const struct fault *fault)
{
	double began;
	int err;
	int i;

	err = try_one(run, fault->bytes);
	if (run->host == 'b' && run->is_first)
		shell(run, fault->begin);
	began = now();
	for (i = 0; i < fault->n_trials && !err && !*run->text; i++) {
		began = now();
		err = try_one(run, fault->bytes);
	}
	if (!err)
		complain(run, "nothing failed");
	else if (now() - began > 31)
		complain(run, "it took %.1f s: %s", now() - began,
			 wreath_error_text());
	if (err) {
		printf("rank %d after %.1f s: %s: %s\n", run->rank,
		       now() - began, wreath_error_name(err),
		       wreath_error_text());
		check_words(run);
	}
	fflush(stdout);
	wreath_comm_destroy(run->comm);
	run->comm = NULL;
	await_heal(run, fault);
	if (run->host == 'b' && run->is_first)
		shell(run, fault->end);
}

static void run_case(struct run *run, const struct fault *fault)
{
	int err = 0;

	run->start = now();
	run->state = (uint64_t)(fault - faults) + 77;
	*run->text = 0;
	if (!run->comm)
		err = wreath_comm_init_env(&run->comm);
	if (err) {
		run->comm = NULL;
		complain(run, "no communicator: %s", wreath_error_text());
	} else if (fault->lasts) {
		fail(run, fault);
	} else {
		survive(run, fault);
	}
	if (*run->text && run->comm) {
		wreath_comm_destroy(run->comm);
		run->comm = NULL;
	}
	tell(run, fault);
}

int main(int argc, char **argv)
{
	struct run run = {
		.rank = number(getenv("RANK")),
		.n_ranks = number(getenv("WORLD_SIZE")),
	};
	int i;
	size_t k;

	if (argc < 3)
		return 2;
	alarm(300);
	run.host = argv[1][0];
	run.is_first = number(argv[2]) == 0;
	run.send = malloc(BYTES_MAX);
	run.recv = malloc(BYTES_MAX);
	for (i = 3; i < argc; i++)
		for (k = 0; k < sizeof(faults) / sizeof(faults[0]); k++)
			if (!strcmp(argv[i], faults[k].name))
				run_case(&run, &faults[k]);
	if (run.comm && wreath_comm_destroy(run.comm))
		printf("@ end %d FAIL 0 %s\n", run.rank, wreath_error_text());
	free(run.send);
	free(run.recv);
	return 0;
}
