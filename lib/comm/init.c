/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "comm/inner.h"

/*
 * With more ranks than cores every pause keeps the one waited for from
 * running (measured: 1 pause 0.8x the time of 10 with 8 ranks on 2 cores).
 * Else a pause is cheaper than a yield (200 to 1000 are best with 2 ranks on 2
 * cores), unless another process turns out to want the core.
 */
#define COMM_SPINS_CROWDED 1
#define COMM_SPINS_SHARED 10
#define COMM_SPINS 1000

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
			{"WREATH_CONNECT", mine->connect, other->connect},
			{"WREATH_SLOTS", mine->slots, other->slots},
			{"WREATH_SLOT_BYTES", mine->slot_bytes,
			 other->slot_bytes},
			{"the hash of WREATH_TUNING's file", mine->tuning,
			 other->tuning},
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
		/* Each may be bound to its own: all of them count. */
		struct topo_cores cores = comm->infos[i].cores;
		int n = 0;

		for (j = 0; j < comm->n_ranks; j++) {
			if (comm->infos[j].host_id != comm->infos[i].host_id)
				continue;
			topo_cores_add(&cores, &comm->infos[j].cores);
			n++;
		}
		comm->crowded |= n > topo_cores_count(&cores);
		comm->all_local &= n == comm->n_ranks;
		comm->all_ports |= comm->infos[i].all_ports;
		if (comm->infos[i].has_channels)
			comm->max_rails = comm->infos[i].channels;
	}
}

static int meet(struct wreath_comm *comm)
{
	struct comm_info info = {
		.host_id = topo_host_id(),
		.version = WREATH_VERSION,
		.algo = (int32_t)comm->env.value[BASE_ENV_ALGO],
		.arrival = (int32_t)comm->env.value[BASE_ENV_ARRIVAL],
		.channels = (int32_t)comm->env.value[BASE_ENV_CHANNELS],
		.connect = (int32_t)comm->env.value[BASE_ENV_CONNECT],
		.slots = (int32_t)comm->env.value[BASE_ENV_SLOTS],
		.all_ports = *comm->env.text[BASE_ENV_HCA] ||
			     !strcmp(comm->env.text[BASE_ENV_SOFT], "off"),
		.has_channels = comm->env.is_set[BASE_ENV_CHANNELS],
		.node = (int32_t)comm->env.value[BASE_ENV_NODE],
		.slot_bytes = comm->env.value[BASE_ENV_SLOT_BYTES],
		.tuning = (int64_t)comm_tuning_hash(comm),
	};
	int err, i;

	topo_cores(&info.cores);
	err = boot_all_gather(comm->boot, &info, sizeof(info), comm->infos);
	if (err)
		return err;
	for (i = 0; i < comm->n_ranks; i++) {
		const struct boot_rank *who = boot_rank(comm->boot, i);

		snprintf(comm->names[i], sizeof(comm->names[i]),
			 "rank %d (%.63s, pid %d)", i, who->host, who->pid);
	}
	count_hosts(comm);
	err = compare_infos(comm);
	return err ? err : comm_nodes_find(comm);
}

void comm_free(struct wreath_comm *comm)
{
	comm->magic = 0;
	wreath_stream_destroy(comm->worker);
	comm_plans_free(comm);
	comm_factors_free(comm);
	comm_model_close(comm);
	comm_gpus_close(comm);
	if (comm->boot)
		boot_answer_by(comm->boot, NULL, NULL);
	net_close(comm->net);
	boot_close(comm->boot);
	pthread_mutex_destroy(&comm->error_lock);
	base_free(comm->infos);
	base_free(comm->names);
	base_free(comm->hosts);
	base_free(comm->nodes);
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
		.while_waiting = comm_while_waiting,
		.while_waiting_arg = comm,
		.stopped = comm_join_stopped,
		.stopped_arg = comm,
	};
	char text[2048];
	int err = boot_open(&args, &comm->boot);

	if (err)
		return err;
	err = meet(comm);
	if (!err)
		err = comm_ports_open(comm);
	if (err) {
		/* The others wait for this rank: tell them why it is gone. */
		comm_own_words(comm, text);
		boot_fail(comm->boot, err, comm->rank, text);
		base_error_again(err, text);
	}
	return err;
}

int comm_alloc(int rank, int n_ranks, const struct base_env *env,
	       struct wreath_comm **out)
{
	struct wreath_comm *comm = base_alloc(1, sizeof(*comm));

	if (!comm)
		return WREATH_ENOMEM;
	comm->magic = COMM_MAGIC;
	comm->rank = rank;
	comm->n_ranks = n_ranks;
	comm->env = *env;
	pthread_mutex_init(&comm->error_lock, NULL);
	pthread_mutex_init(&comm->gpu_lock, NULL);
	comm->infos = base_alloc((size_t)n_ranks, sizeof(*comm->infos));
	comm->names = base_alloc((size_t)n_ranks, sizeof(*comm->names));
	comm->hosts = base_alloc((size_t)n_ranks, sizeof(*comm->hosts));
	comm->nodes = base_alloc((size_t)n_ranks, sizeof(*comm->nodes));
	comm->n_nodes = 1;
	if (!comm->infos || !comm->names || !comm->hosts || !comm->nodes) {
		comm_free(comm);
		return WREATH_ENOMEM;
	}
	*out = comm;
	return 0;
}

static void set_guard(struct wreath_comm *comm)
{
	int64_t spins = comm->env.value[BASE_ENV_SPIN];

	comm->guard.n_spins_min = (int)spins;
	comm->guard.n_spins_max = (int)spins;
	if (spins < 0) {
		comm->guard.n_spins_min = COMM_SPINS_SHARED;
		comm->guard.n_spins_max = COMM_SPINS;
	}
	if (spins < 0 && comm->crowded) {
		comm->guard.n_spins_min = COMM_SPINS_CROWDED;
		comm->guard.n_spins_max = COMM_SPINS_CROWDED;
	}
	comm->guard.timeout_ms = comm->env.value[BASE_ENV_TIMEOUT];
	comm->guard.stopped = comm_guard_stopped;
	comm->guard.left = comm_guard_left;
	comm->guard.arg = comm;
}

int comm_join(struct wreath_comm *comm, const struct wreath_unique_id *id,
	      const struct comm_stop *stop)
{
	char before[2048];
	int err;

	/* Devices are probed; what they refuse is no failure of the call. */
	snprintf(before, sizeof(before), "%s", base_error_text());
	comm->stop = stop;
	err = comm_model_open(comm);
	if (!err && comm->n_ranks > 1)
		err = join(comm, id);
	else if (!err)
		snprintf(comm->names[0], sizeof(comm->names[0]), "rank 0");
	comm->stop = NULL;
	if (err)
		return err;
	set_guard(comm);
	base_error_again(0, before);
	return 0;
}

int comm_new(const struct wreath_unique_id *id, int rank, int n_ranks,
	     const struct base_env *env, const struct comm_stop *stop,
	     struct wreath_comm **out)
{
	struct wreath_comm *comm;
	int err = comm_alloc(rank, n_ranks, env, &comm);

	if (err)
		return err;
	err = comm_join(comm, id, stop);
	if (err)
		comm_free(comm);
	else
		*out = comm;
	return err;
}

int comm_check_init(const struct wreath_unique_id *id, int rank, int n_ranks,
		    struct wreath_comm **comm, const char *function)
{
	if (!id || !comm)
		return base_error(WREATH_EINVAL, "%s: %s is NULL", function,
				  id ? "comm" : "id");
	if (n_ranks < 1 || n_ranks > COMM_RANKS_MAX)
		return base_error(WREATH_EINVAL,
				  "%s: n_ranks %d is not in 1..%d", function,
				  n_ranks, COMM_RANKS_MAX);
	if (rank < 0 || rank >= n_ranks)
		return base_error(WREATH_EINVAL, "%s: rank %d is not in 0..%d",
				  function, rank, n_ranks - 1);
	return 0;
}

int wreath_comm_init(const struct wreath_unique_id *id, int rank, int n_ranks,
		     struct wreath_comm **comm)
{
	struct base_env env;
	int err = comm_check_init(id, rank, n_ranks, comm, "wreath_comm_init");

	if (!err)
		err = base_env_load(&env);
	return err ? err : comm_new(id, rank, n_ranks, &env, NULL, comm);
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
	if (place.n_ranks > COMM_RANKS_MAX)
		return base_error(WREATH_EINVAL,
				  "%s gives %d ranks; wreath takes at most %d",
				  place.found_by, place.n_ranks,
				  COMM_RANKS_MAX);
	return comm_new(&place.id, place.rank, place.n_ranks, &env, NULL,
			comm);
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
	if (comm_is_joining(comm))
		return "none: still joining";
	return comm->net ? net_text(comm->net) : "none: one rank alone";
}
