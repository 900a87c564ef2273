/* SPDX-License-Identifier: MIT */
/*
 * Memory of GPUs between ranks of a host, by CUDA IPC.
 *
 * A rank that exports relies on its peer to import: both ends must conclude
 * alike, and in an operation of all ranks all must.  So it is settled when
 * ranks agree on their ports: either all ranks of a host reach each other's
 * GPUs, or none exports anything.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/reach.h"

static uint64_t mix(uint64_t hash, uint64_t with)
{
	hash = (hash ^ with) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 32;
}

static uint64_t inode(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

/* CUDA finds the owner of a handle by its process id and by System V IPC, so
 * that containers that do not share those cannot exchange any. */
static uint64_t space(void)
{
	uint64_t hash = mix(inode("/proc/self/ns/pid"),
			    inode("/proc/self/ns/ipc"));

	return mix(hash, geteuid()) | 1;
}

static uint64_t uuid_word(const unsigned char uuid[16])
{
	uint64_t words[2];

	memcpy(words, uuid, sizeof(words));
	return mix(words[0], words[1]) | 1;
}

void net_ipc_offer(const struct base_env *env, struct net_ipc_offer *out)
{
	struct mem_gpu_info info;
	size_t n = 0;
	int gpu, i;

	memset(out, 0, sizeof(*out));
	if (env->value[BASE_ENV_GPU_IPC])
		return;
	/* Who has no context yet would have to make one to know. */
	gpu = mem_cuda_device();
	if (gpu < 0)
		gpu = mem_gpu_held();
	if (gpu < 0 || mem_gpu_info(gpu, &info))
		return;
	out->space = space();
	out->gpu = uuid_word(info.uuid);
	for (i = 0; i < mem_gpu_count() && n < base_countof(out->reached); i++)
		if (mem_gpu_reaches(gpu, i) && !mem_gpu_info(i, &info))
			out->reached[n++] = uuid_word(info.uuid);
}

static bool reaches(const struct net_ipc_offer *from,
		    const struct net_ipc_offer *to)
{
	size_t i;

	for (i = 0; i < base_countof(from->reached); i++)
		if (from->reached[i] == to->gpu)
			return true;
	return false;
}

/* A rank of this host, and what it offers. */
struct neighbour {
	int rank;
	struct net_ipc_offer offer;
};

/* How many there are, or an error. */
static int read_offers(const struct net *net, struct neighbour *out)
{
	struct net_offer offer;
	int n = 0;
	int err, i;

	for (i = 0; i < net->n_ranks; i++) {
		if (net->hosts[i] != net->hosts[net->rank])
			continue;
		err = net_offer_of(net, i, &offer);
		if (err)
			return err;
		out[n].rank = i;
		out[n++].offer = offer.ipc;
	}
	return n;
}

/*
 * NULL: they all reach each other; else why the @whom of them does not.  As
 * many as n^2 looks: of the ranks of a host, which are few.
 */
static const char *why_not(const struct neighbour *all, int n, int *whom)
{
	int i, j;

	for (i = 0; i < n; i++) {
		*whom = i;
		if (!all[i].offer.space)
			return "has no GPU in use yet, or WREATH_GPU_IPC=off";
		if (all[i].offer.space != all[0].offer.space)
			return "is another user's, or in a container with "
			       "other PIDs or IPC (--pid=host --ipc=host)";
		for (j = 0; j < n; j++)
			if (!reaches(&all[i].offer, &all[j].offer))
				return "has a GPU that does not reach all "
				       "others, or CUDA_VISIBLE_DEVICES hides "
				       "them";
	}
	return NULL;
}

/* Who has no GPU does not want to know. */
static bool has_gpu(const struct neighbour *all, int n, int rank)
{
	int i;

	for (i = 0; i < n; i++)
		if (all[i].rank == rank)
			return all[i].offer.space;
	return false;
}

int net_ipc_agree(struct net *net)
{
	struct neighbour *all = base_alloc((size_t)net->n_ranks, sizeof(*all));
	int n = all ? read_offers(net, all) : WREATH_ENOMEM;
	const char *why;
	int whom = 0;

	if (n > 1) {
		why = why_not(all, n, &whom);
		net->has_ipc = !why;
		if (why && has_gpu(all, n, net->rank))
			base_log(BASE_LOG_INFO,
				 "ranks of this host do not reach each other's "
				 "memory of GPUs: %s %s",
				 net->names[all[whom].rank], why);
	}
	base_free(all);
	return n < 0 ? n : 0;
}

/* The entry of the allocation, or the one that was not granted for longest. */
static int entry_of(const struct net_exports *exports, uint64_t id)
{
	int oldest = 0;
	int i;

	for (i = 0; i < NET_EXPORTS; i++) {
		if (exports->ids[i] == id)
			return i;
		if (exports->granted[i] < exports->granted[oldest])
			oldest = i;
	}
	return oldest;
}

/* The entry, and enough of the allocation's id to know it by. */
static uint32_t key_of(int i, uint64_t id)
{
	return (uint32_t)id * NET_EXPORTS + (uint32_t)i;
}

bool net_ipc_grant(struct net_conn *conn, const struct mem_where *where,
		   const void *ptr, size_t bytes, uint32_t *key)
{
	size_t at = (uintptr_t)ptr - (uintptr_t)where->base;
	struct net_exports *exports = &conn->exports;
	struct mem_export export = {.id = 0};
	int i;

	if (!conn->net->has_ipc || !where->id)
		return false;
	/* What lies in several that are mapped side by side is no export. */
	if (at > where->bytes || bytes > where->bytes - at)
		return false;
	i = entry_of(exports, where->id);
	if (exports->ids[i] != where->id) {
		if (mem_export(where, &export))
			return false;
		/* The peer reads it when the grant has come, which is behind
		 * it: a request to the device publishes what was stored. */
		memcpy(conn->mailbox + NET_BOX_EXPORTS +
			       (size_t)i * NET_EXPORT_BYTES,
		       &export, sizeof(export));
		exports->ids[i] = where->id;
	}
	exports->granted[i] = ++conn->net->n_granted;
	*key = key_of(i, where->id);
	return true;
}

static int failed(const struct net_conn *conn, const char *why)
{
	const struct net *net = conn->net;

	return base_error(WREATH_ENET,
			  "%s cannot import memory of a GPU from %s by CUDA "
			  "IPC: %.300s; WREATH_GPU_IPC=off at all ranks does "
			  "without", net->names[net->rank],
			  net->names[conn->peer], why);
}

void *net_ipc_map(struct net_conn *conn, uint32_t key, uint64_t address,
		  uint64_t bytes)
{
	size_t i = key % NET_EXPORTS;
	struct mem_export export;
	struct net *net = conn->net;
	void *out = NULL;
	int err;

	if (!conn->mailbox_map) {
		net->failed = failed(conn, "its exports are out of reach");
		return NULL;
	}
	/* A copy: what is checked stays what is used. */
	memcpy(&export,
	       conn->mailbox_map + NET_BOX_EXPORTS + i * NET_EXPORT_BYTES,
	       sizeof(export));
	if (key_of((int)i, export.id) != key) {
		net->failed = failed(conn, "its entry is of another allocation "
					   "than the grant");
		return NULL;
	}
	err = mem_import(net->gpu, &export, address, bytes, &out);
	if (err)
		net->failed = failed(conn, base_error_text());
	return err ? NULL : out;
}
