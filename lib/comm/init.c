/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "comm/inner.h"
#include "soft/soft.h"
#include "topo/topo.h"

/* With more ranks than cores every pause keeps the one waited for from
 * running; else a pause is cheaper than a yield (measured: 200 to 1000 best
 * with 2 ranks on 2 cores, 0 to 20 with 4 and 8). */
#define COMM_SPINS 1000
#define COMM_SPINS_CROWDED 10

/* A failure of a peer shows in the network before boot has named the cause;
 * it is worth waiting so long for the name. */
#define COMM_CAUSE_MS 500

int wreath_version(void)
{
	return WREATH_VERSION;
}

int wreath_unique_id_create(struct wreath_unique_id *id)
{
	struct base_env env;
	int err;

	if (!id)
		return base_error(WREATH_EINVAL,
				  "wreath_unique_id_create: id is NULL");
	err = base_env_load(&env);
	if (err)
		return err;
	return boot_root_start(env.text[BASE_ENV_SOCKET_IFNAME], 1, id);
}

/* ---- failure ---- */

int comm_error(struct wreath_comm *comm)
{
	int error = atomic_load_explicit(&comm->error, memory_order_acquire);

	if (base_likely(!error))
		return 0;
	pthread_mutex_lock(&comm->error_lock);
	base_error_again(error, comm->error_text);
	pthread_mutex_unlock(&comm->error_lock);
	return error;
}

/* The first error stays. */
static int keep_error(struct wreath_comm *comm, int error, const char *text)
{
	pthread_mutex_lock(&comm->error_lock);
	if (!atomic_load_explicit(&comm->error, memory_order_relaxed)) {
		snprintf(comm->error_text, sizeof(comm->error_text), "%s",
			 text);
		/* Pairs with the acquire in comm_error(). */
		atomic_store_explicit(&comm->error, error,
				      memory_order_release);
	}
	pthread_mutex_unlock(&comm->error_lock);
	return comm_error(comm);
}

static int heard_failure(struct wreath_comm *comm)
{
	struct boot_failure failure;

	if (!boot_failure(comm->boot, &failure))
		return 0;
	return keep_error(comm, failure.error, failure.text);
}

int comm_fail(struct wreath_comm *comm, int error)
{
	uint64_t end_ns = base_now_ns() + COMM_CAUSE_MS * 1000000ull;
	char text[2048];
	int heard = comm_error(comm);

	if (heard)
		return heard;
	snprintf(text, sizeof(text), "%s", base_error_text());
	if (!comm->boot)
		return keep_error(comm, error, text);
	/* A broken link is mostly the shadow of a dead rank: hear who. */
	while (!(heard = heard_failure(comm)) && error == WREATH_ENET &&
	       base_now_ns() < end_ns)
		base_sleep_ms(10);
	if (heard)
		return heard;
	boot_fail(comm->boot, error, -1, text);
	return keep_error(comm, error, text);
}

static int guard_stopped(void *arg)
{
	struct wreath_comm *comm = arg;
	int err = comm_error(comm);

	return err ? err : heard_failure(comm);
}

static int guard_left(void *arg, int peer)
{
	struct wreath_comm *comm = arg;

	if (!boot_has_left(comm->boot, peer))
		return 0;
	return base_error(WREATH_EPEER,
			  "%s has destroyed its communicator while %s waits "
			  "for it; every rank must make the same calls",
			  comm->names[peer], comm->names[comm->rank]);
}

int wreath_comm_async_error(struct wreath_comm *comm)
{
	int err = comm_check(comm, "wreath_comm_async_error");

	if (err)
		return err;
	err = comm_error(comm);
	return err || !comm->boot ? err : heard_failure(comm);
}

int wreath_comm_abort(struct wreath_comm *comm)
{
	char text[256];
	int err = comm_check(comm, "wreath_comm_abort");

	if (err)
		return err;
	snprintf(text, sizeof(text), "%s called wreath_comm_abort()",
		 comm->names[comm->rank]);
	atomic_store(&comm->aborted, true);
	keep_error(comm, WREATH_EABORTED, text);
	if (comm->boot)
		boot_fail(comm->boot, WREATH_EABORTED, comm->rank, text);
	return 0;
}

/* ---- making ---- */

static int compare_infos(struct wreath_comm *comm)
{
	const struct comm_info *mine = &comm->infos[comm->rank];
	int i;

	for (i = 0; i < comm->n_ranks; i++) {
		const struct comm_info *other = &comm->infos[i];
		const struct {
			const char *what;
			int64_t mine, other;
		} rows[] = {
			{"wreath's version", mine->version, other->version},
			{"WREATH_ALGO", mine->algo, other->algo},
			{"WREATH_ARRIVAL", mine->arrival, other->arrival},
			{"WREATH_CHANNELS", mine->channels, other->channels},
			{"WREATH_SLOTS", mine->slots, other->slots},
			{"WREATH_SLOT_BYTES", mine->slot_bytes,
			 other->slot_bytes},
		};
		size_t row;

		for (row = 0; row < base_countof(rows); row++) {
			if (rows[row].mine == rows[row].other)
				continue;
			return base_error(
				WREATH_EMISMATCH,
				"%s is %" PRId64 " on %s and %" PRId64
				" on %s; give all ranks the same",
				rows[row].what, rows[row].mine,
				comm->names[comm->rank], rows[row].other,
				comm->names[i]);
		}
	}
	return 0;
}

/* Whether ranks outnumber cores anywhere: all ranks must conclude alike. */
static void count_hosts(struct wreath_comm *comm)
{
	int i, j;

	comm->all_local = true;
	for (i = 0; i < comm->n_ranks; i++) {
		const struct comm_info *info = &comm->infos[i];
		int n = 0;

		for (j = 0; j < comm->n_ranks; j++)
			n += comm->infos[j].host_id == info->host_id;
		comm->crowded |= n > info->n_cores;
		comm->all_local &= n == comm->n_ranks;
	}
}

static int meet(struct wreath_comm *comm)
{
	struct comm_info info = {
		.host_id = topo_host_id(),
		.version = WREATH_VERSION,
		.n_cores = topo_n_cores(),
		.algo = (int32_t)comm->env.value[BASE_ENV_ALGO],
		.arrival = (int32_t)comm->env.value[BASE_ENV_ARRIVAL],
		.channels = (int32_t)comm->env.value[BASE_ENV_CHANNELS],
		.slots = (int32_t)comm->env.value[BASE_ENV_SLOTS],
		.slot_bytes = comm->env.value[BASE_ENV_SLOT_BYTES],
	};
	int err = boot_all_gather(comm->boot, &info, sizeof(info), comm->infos);
	int i;

	if (err)
		return err;
	for (i = 0; i < comm->n_ranks; i++) {
		const struct boot_rank *who = boot_rank(comm->boot, i);

		snprintf(comm->names[i], sizeof(comm->names[i]),
			 "rank %d (%.63s, pid %d)", i, who->host, who->pid);
	}
	count_hosts(comm);
	return compare_infos(comm);
}

static int open_net(struct wreath_comm *comm)
{
	struct net_args args = {
		.env = &comm->env,
		.all_local = comm->all_local,
		.crowded = comm->crowded,
		.rank = comm->rank,
		.n_ranks = comm->n_ranks,
		.names = comm->names,
	};
	int err = soft_table(&args.soft);

	if (err && err != WREATH_EUNSUP)
		return err;
	/* libibverbs is loaded where it may be needed, not in every program. */
	if (err || !comm->all_local || *comm->env.text[BASE_ENV_HCA]) {
		err = verbs_ibv(&args.ibv);
		if (err && err != WREATH_EUNSUP)
			return err;
	}
	return net_open(&args, &comm->net);
}

static void comm_free(struct wreath_comm *comm)
{
	comm->magic = 0;
	comm_plans_free(comm);
	net_close(comm->net);
	boot_close(comm->boot);
	pthread_mutex_destroy(&comm->error_lock);
	base_free(comm->infos);
	base_free(comm->names);
	base_free(comm);
}

static int join(struct wreath_comm *comm, const struct wreath_unique_id *id)
{
	struct boot_args args = {
		.id = id,
		.rank = comm->rank,
		.n_ranks = comm->n_ranks,
		.join_timeout_ms = comm->env.value[BASE_ENV_JOIN_TIMEOUT],
		.timeout_ms = comm->env.value[BASE_ENV_TIMEOUT],
	};
	char text[2048];
	int err = boot_open(&args, &comm->boot);

	if (err)
		return err;
	err = meet(comm);
	if (!err)
		err = open_net(comm);
	if (err) {
		/* The others wait for this rank: tell them why it won't come. */
		snprintf(text, sizeof(text), "%s", base_error_text());
		boot_fail(comm->boot, err, comm->rank, text);
		base_error_again(err, text);
	}
	return err;
}

static int comm_new(const struct wreath_unique_id *id, int rank, int n_ranks,
		    const struct base_env *env, struct wreath_comm **out)
{
	struct wreath_comm *comm = base_alloc(1, sizeof(*comm));
	int64_t spins = env->value[BASE_ENV_SPIN];
	int err = 0;

	if (!comm)
		return WREATH_ENOMEM;
	comm->magic = COMM_MAGIC;
	comm->rank = rank;
	comm->n_ranks = n_ranks;
	comm->env = *env;
	pthread_mutex_init(&comm->error_lock, NULL);
	comm->infos = base_alloc((size_t)n_ranks, sizeof(*comm->infos));
	comm->names = base_alloc((size_t)n_ranks, sizeof(*comm->names));
	if (!comm->infos || !comm->names)
		err = WREATH_ENOMEM;
	if (!err && n_ranks > 1)
		err = join(comm, id);
	else if (!err)
		snprintf(comm->names[0], sizeof(comm->names[0]), "rank 0");
	if (err) {
		comm_free(comm);
		return err;
	}
	if (spins < 0)
		spins = comm->crowded ? COMM_SPINS_CROWDED : COMM_SPINS;
	comm->guard.n_spins = (int)spins;
	comm->guard.timeout_ms = env->value[BASE_ENV_TIMEOUT];
	comm->guard.stopped = guard_stopped;
	comm->guard.left = guard_left;
	comm->guard.arg = comm;
	*out = comm;
	return 0;
}

int wreath_comm_init(const struct wreath_unique_id *id, int rank, int n_ranks,
		     struct wreath_comm **comm)
{
	struct base_env env;
	int err;

	if (!id || !comm)
		return base_error(WREATH_EINVAL, "wreath_comm_init: %s is NULL",
				  id ? "comm" : "id");
	if (n_ranks < 1 || n_ranks > SCHED_RANKS_MAX)
		return base_error(WREATH_EINVAL,
				  "wreath_comm_init: n_ranks %d is not in "
				  "1..%d", n_ranks, SCHED_RANKS_MAX);
	if (rank < 0 || rank >= n_ranks)
		return base_error(WREATH_EINVAL,
				  "wreath_comm_init: rank %d is not in 0..%d",
				  rank, n_ranks - 1);
	err = base_env_load(&env);
	return err ? err : comm_new(id, rank, n_ranks, &env, comm);
}

int wreath_comm_init_env(struct wreath_comm **comm)
{
	struct boot_place place;
	struct base_env env;
	int err;

	if (!comm)
		return base_error(WREATH_EINVAL,
				  "wreath_comm_init_env: comm is NULL");
	err = base_env_load(&env);
	if (!err)
		err = boot_discover(&env, &place);
	if (err)
		return err;
	if (place.n_ranks > SCHED_RANKS_MAX)
		return base_error(WREATH_EINVAL,
				  "%s gives %d ranks; wreath takes at most %d",
				  place.found_by, place.n_ranks,
				  SCHED_RANKS_MAX);
	return comm_new(&place.id, place.rank, place.n_ranks, &env, comm);
}

/* ---- ending ---- */

int wreath_comm_finalize(struct wreath_comm *comm)
{
	struct net_sign sign = {.collective = SCHED_N_COLLECTIVES};
	char done[SCHED_RANKS_MAX];
	int err = comm_check(comm, "wreath_comm_finalize");

	if (err || comm->is_final)
		return err;
	err = comm_drain(comm);
	if (!err && comm->boot) {
		/* Who waits for this rank in one more operation shall see why
		 * it won't come. */
		sign.seq = atomic_load_explicit(&comm->next_ticket,
						memory_order_relaxed) + 1;
		net_sign_post(comm->net, &sign);
		err = boot_all_gather(comm->boot, "", 1, done);
	}
	if (err)
		return comm_fail(comm, err);
	comm->is_final = true;
	return 0;
}

int wreath_comm_destroy(struct wreath_comm *comm)
{
	int err;

	if (!comm)
		return 0;
	err = comm_check(comm, "wreath_comm_destroy");
	if (err)
		return err;
	if (!comm_error(comm))
		err = wreath_comm_finalize(comm);
	else
		/* Nobody may be inside when the memory goes. */
		comm_drain(comm);
	comm_free(comm);
	return err;
}

/* ---- queries ---- */

int comm_check(const struct wreath_comm *comm, const char *function)
{
	if (comm_is_valid(comm))
		return 0;
	return base_error(WREATH_EINVAL, "%s: %s", function,
			  comm ? "not a communicator, or one destroyed already"
			       : "the communicator is NULL");
}

int wreath_comm_rank(const struct wreath_comm *comm)
{
	int err = comm_check(comm, "wreath_comm_rank");

	return err ? err : comm->rank;
}

int wreath_comm_size(const struct wreath_comm *comm)
{
	int err = comm_check(comm, "wreath_comm_size");

	return err ? err : comm->n_ranks;
}

const char *wreath_comm_device(const struct wreath_comm *comm)
{
	if (comm_check(comm, "wreath_comm_device"))
		return NULL;
	return comm->net ? net_text(comm->net) : "none: one rank alone";
}
