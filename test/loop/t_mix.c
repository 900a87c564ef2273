/* SPDX-License-Identifier: MIT */
/*
 * Goal: operations of all kinds go together: many on one communicator, on
 * several communicators of one process at once, on several streams, with
 * blocking calls in between.
 * Method: seeded trials, the same on every rank, each checked in full.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "test/loop/trial.h"

#define N_COMMS 3
#define N_STREAMS 2
#define N_OPEN 12 /* operations under way */

static void run_mix(rank_body *body, const struct trials_plan *plan, int n,
		    enum ranks_mode mode, bool no_comm)
{
	struct ranks run = {
		.n = n, .mode = mode, .body = body, .arg = plan,
		.no_comm = no_comm, .seconds = RANKS_SLOW ? 200 : 60};

	ranks_start(&run);
	ranks_join(&run);
	ranks_expect_ok(&run);
	trials_expect_same(&run);
	ranks_end(&run);
}

static void one_communicator_takes_thousands(void **state)
{
	const struct trials_plan plan = {
		.seed = ranks_seed(),
		.bytes = 64 << 10,
		.n_trials = RANKS_TIMES(150, 1500, 20000),
	};

	(void)state;
	run_mix(trials_body, &plan, 4, RANKS_PROCESSES, false);
	run_mix(trials_body, &plan, 3, RANKS_THREADS, false);
}

static int join_all(struct rank *rank, struct wreath_comm **comms)
{
	int err = 0;
	int i;

	memset(comms, 0, N_COMMS * sizeof(*comms));
	for (i = 0; i < N_COMMS && !err; i++)
		err = rank_join(rank, &comms[i]);
	return err;
}

static int leave_all(struct wreath_comm **comms)
{
	int err = 0;
	int i;

	for (i = 0; i < N_COMMS && !err; i++)
		err = wreath_comm_destroy(comms[i]);
	return err;
}

static _Atomic unsigned int n_signals;

static void on_signal(int signal)
{
	(void)signal;
	atomic_fetch_add(&n_signals, 1);
}

/* A profiler's timer: every system call may be interrupted. */
static int work_interrupted(struct rank *rank)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
				 .sigev_signo = SIGUSR1};
	const struct itimerspec often = {.it_interval = {.tv_nsec = 300000},
					 .it_value = {.tv_nsec = 300000}};
	timer_t timer;
	int err;

	if (sigaction(SIGUSR1, &action, NULL) ||
	    timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &often, NULL))
		return rank_broken(rank, "no timer");
	err = rank_join(rank, &rank->comm);
	if (!err)
		err = trials_body(rank);
	if (!err && !atomic_load(&n_signals))
		err = rank_broken(rank, "no signal came");
	timer_delete(timer);
	return err;
}

static void signals_change_nothing(void **state)
{
	const struct trials_plan plan = {
		.seed = ranks_seed(),
		.bytes = 128 << 10,
		.n_trials = RANKS_TIMES(50, 300, 3000),
	};

	(void)state;
	run_mix(work_interrupted, &plan, 3, RANKS_PROCESSES, true);
}

struct user {
	struct rank rank; /* as if it were one of its own */
	int err;
	pthread_t thread;
};

static void *use(void *arg)
{
	struct user *user = arg;

	user->err = trials_body(&user->rank);
	/* The text is this thread's; keep it where the harness looks. */
	if (user->err && user->err != RANKS_BROKEN)
		user->err = rank_broken(&user->rank, "%s: %s",
					wreath_error_name(user->err),
					wreath_error_text());
	return NULL;
}

/* A thread for each communicator, all at once. */
static int use_at_once(struct rank *rank)
{
	struct wreath_comm *comms[N_COMMS];
	struct user users[N_COMMS];
	int err = join_all(rank, comms);
	int i;

	for (i = 0; i < N_COMMS && !err; i++) {
		users[i].rank = *rank;
		users[i].rank.comm = comms[i];
		if (pthread_create(&users[i].thread, NULL, use, &users[i]))
			return rank_broken(rank, "no thread");
	}
	for (i = 0; i < N_COMMS && !err; i++) {
		pthread_join(users[i].thread, NULL);
		if (users[i].err)
			err = users[i].err;
	}
	return err ? err : leave_all(comms);
}

static void communicators_work_at_once(void **state)
{
	const struct trials_plan plan = {
		.seed = ranks_seed(),
		.bytes = 128 << 10,
		.n_trials = RANKS_TIMES(30, 200, 3000),
	};

	(void)state;
	run_mix(use_at_once, &plan, 2, RANKS_PROCESSES, true);
	run_mix(use_at_once, &plan, 3, RANKS_THREADS, true);
}

struct flow {
	struct wreath_comm *comms[N_COMMS];
	struct wreath_stream *streams[N_STREAMS];
	struct trials trials;
	struct trial open[N_OPEN];
	int n_open;
};

/* Everything under way, in the order in which it was begun. */
static int flush(struct rank *rank, struct flow *flow)
{
	int err = 0;
	int i;

	for (i = 0; i < N_STREAMS && !err; i++)
		err = wreath_stream_wait(flow->streams[i]);
	for (i = 0; i < flow->n_open && !err; i++)
		err = trial_end(rank, &flow->trials, &flow->open[i]);
	flow->n_open = 0;
	return err;
}

static int flow_on(struct rank *rank, struct flow *flow)
{
	const struct trials_plan *plan = rank->arg;
	uint64_t *state = &flow->trials.state;
	int err = 0;
	int i;

	for (i = 0; i < plan->n_trials && !err; i++) {
		struct trial *trial = &flow->open[flow->n_open++];
		struct wreath_comm *comm =
			flow->comms[ranks_random(state) % N_COMMS];
		uint64_t way = ranks_random(state) % (N_STREAMS * 2 + 1);

		trial_draw(&flow->trials, rank,
			   trial_count(state, plan->bytes), trial);
		err = trial_begin(rank, trial, comm,
				  way == N_STREAMS * 2
					  ? NULL
					  : flow->streams[way % N_STREAMS]);
		if (!err && flow->n_open == N_OPEN)
			err = flush(rank, flow);
	}
	return err ? err : flush(rank, flow);
}

/* Several communicators on several streams, from one thread. */
static int use_streams(struct rank *rank)
{
	const struct trials_plan *plan = rank->arg;
	struct flow flow = {.n_open = 0};
	int err = join_all(rank, flow.comms);
	int i;

	trials_init(&flow.trials, rank, plan->seed);
	for (i = 0; i < N_STREAMS && !err; i++)
		err = wreath_stream_create(&flow.streams[i]);
	if (!err)
		err = flow_on(rank, &flow);
	for (i = 0; i < N_STREAMS && !err; i++)
		err = wreath_stream_destroy(flow.streams[i]);
	if (!err)
		err = leave_all(flow.comms);
	trials_tell(&flow.trials, rank);
	return err;
}

static void streams_carry_several_communicators(void **state)
{
	const struct trials_plan plan = {
		.seed = ranks_seed(),
		.bytes = 128 << 10,
		.n_trials = RANKS_TIMES(60, 500, 8000),
	};

	(void)state;
	run_mix(use_streams, &plan, 3, RANKS_PROCESSES, true);
	run_mix(use_streams, &plan, 4, RANKS_THREADS, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_communicator_takes_thousands),
		cmocka_unit_test(signals_change_nothing),
		cmocka_unit_test(communicators_work_at_once),
		cmocka_unit_test(streams_carry_several_communicators),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
