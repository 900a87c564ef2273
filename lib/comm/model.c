/* SPDX-License-Identifier: MIT */
/* What is known of the machine, and the choice that follows from it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "comm/comm.h"
#include "comm/model.h"

#define TUNING_BYTES_MAX (64 << 10)

static int read_text(const char *path, char *text)
{
	size_t have = 0;
	int err = 0;
	/* Not to hang in open() where the path is a pipe. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return base_error(WREATH_EINVAL,
				  "WREATH_TUNING: the file '%.256s' cannot be "
				  "opened: %s", path, strerror(errno));
	while (have < TUNING_BYTES_MAX) {
		ssize_t n = read(fd, text + have, TUNING_BYTES_MAX - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err = base_error(WREATH_EINVAL,
					 "WREATH_TUNING: the file '%.256s' "
					 "cannot be read: %s", path,
					 strerror(errno));
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	close(fd);
	if (!err && have == TUNING_BYTES_MAX)
		err = base_error(WREATH_EINVAL,
				 "WREATH_TUNING: the file '%.256s' has %d bytes "
				 "or more", path, TUNING_BYTES_MAX);
	return err;
}

static int read_tuning(struct comm_model *model, const char *path)
{
	char *text = base_alloc(TUNING_BYTES_MAX, 1);
	int err;

	model->tuning = base_alloc(1, sizeof(*model->tuning));
	err = text && model->tuning ? read_text(path, text) : WREATH_ENOMEM;
	if (!err)
		err = sched_tuning_parse(path, text, model->tuning);
	base_free(text);
	return err;
}

int comm_model_open(struct wreath_comm *comm)
{
	const char *path = comm->env.text[BASE_ENV_TUNING];

	comm->model = base_alloc(1, sizeof(*comm->model));
	if (!comm->model)
		return WREATH_ENOMEM;
	return *path ? read_tuning(comm->model, path) : 0;
}

void comm_model_close(struct wreath_comm *comm)
{
	struct comm_model *model = comm->model;
	int i;

	if (!model)
		return;
	for (i = 0; i < SCHED_N_COLLECTIVES; i++)
		base_free(model->choosers[i]);
	base_free(model->tuning);
	base_free(model);
}

uint64_t comm_tuning_hash(const struct wreath_comm *comm)
{
	return comm->model->tuning ? comm->model->tuning->hash : 0;
}

/* Where cores are scarcest; as comm->crowded is found. */
static void count_cores(const struct wreath_comm *comm, int *n_ranks,
			int *n_cores)
{
	int i, j;

	*n_ranks = *n_cores = 1;
	for (i = 0; i < comm->n_ranks; i++) {
		struct topo_cores cores = comm->infos[i].cores;
		int n = 0;
		int have;

		for (j = 0; j < comm->n_ranks; j++) {
			if (comm->infos[j].host_id != comm->infos[i].host_id)
				continue;
			topo_cores_add(&cores, &comm->infos[j].cores);
			n++;
		}
		have = topo_cores_count(&cores);
		if ((int64_t)n * *n_cores > (int64_t)*n_ranks * have) {
			*n_ranks = n;
			*n_cores = have;
		}
	}
}

static int gather(struct wreath_comm *comm, const struct sched_measured *mine,
		  struct sched_measured *all)
{
	return boot_all_gather(comm->boot, mine, sizeof(*mine), all);
}

/* All ranks measure, or none. */
static int measure(struct wreath_comm *comm, struct comm_model *model)
{
	struct sched_measured mine = {.maps_all = 1};
	struct sched_measured *all;
	int err, t;

	if (comm->is_plain) {
		model->cost.is_plain = true;
		return 0;
	}
	all = base_alloc((size_t)comm->n_ranks, sizeof(*all));
	if (!all)
		return WREATH_ENOMEM;
	for (t = 0; t < SCHED_TIERS; t++)
		mine.latency[t] = -1;
	err = comm_measure(comm, &mine);
	if (!err)
		err = gather(comm, &mine, all);
	if (!err)
		sched_cost_measured(&model->cost, all, comm->n_ranks);
	base_free(all);
	return err;
}

static void tell(const struct sched_cost *cost)
{
	int t;

	for (t = 0; t <= cost->n_rails; t++)
		base_log(BASE_LOG_INFO, "%s %d: %.2f us a message, %.3f GB/s",
			 t ? "rail" : "node", t ? t - 1 : 0,
			 cost->tiers[t].latency * 1e6,
			 cost->tiers[t].bandwidth / 1e9);
}

static int make_model(struct wreath_comm *comm, struct comm_model *model)
{
	int n_ranks, n_cores;
	int err, i;

	count_cores(comm, &n_ranks, &n_cores);
	sched_cost_default(&model->cost, n_ranks, n_cores);
	model->cost.slot_bytes = comm->net->slot_bytes;
	model->cost.n_slots = comm->net->n_slots;
	model->cost.n_rails = comm->n_nodes > 1 ? comm->net->n_rails : 0;
	for (i = 0; i < model->cost.n_rails; i++)
		model->cost.weights[i] = net_channel_weight(comm->net, i);
	err = measure(comm, model);
	if (err)
		return err;
	tell(&model->cost);
	model->is_made = true;
	return 0;
}

int comm_chooser_new(struct wreath_comm *comm,
		     enum sched_collective collective,
		     const struct sched_chooser **out)
{
	struct comm_model *model = comm->model;
	struct sched_shape shape = {
		.collective = collective,
		.n_ranks = comm->n_ranks,
		.n_channels = comm->net->n_channels,
		.n_nodes = comm->n_nodes,
		.nodes = comm->nodes,
	};
	struct sched_chooser *chooser;
	int err = model->is_made ? 0 : make_model(comm, model);

	if (err)
		return err;
	chooser = base_alloc(1, sizeof(*chooser));
	if (!chooser)
		return WREATH_ENOMEM;
	err = sched_chooser_init(chooser, &shape, &model->cost, model->tuning,
				 comm->settings);
	if (err) {
		base_free(chooser);
		return err;
	}
	model->choosers[collective] = chooser;
	*out = chooser;
	return 0;
}

const struct sched_chooser *comm_chooser(const struct wreath_comm *comm,
					 enum sched_collective collective)
{
	return comm->model ? comm->model->choosers[collective] : NULL;
}
