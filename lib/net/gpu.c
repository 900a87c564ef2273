/* SPDX-License-Identifier: MIT */
/*
 * Memory of GPUs that is registered with ports.
 *
 * The user allocates and frees it without telling us, so that a registration
 * may be of memory that is no more: allocations have ids that are never used
 * twice, and the driver is asked whether an id still is at its address, each
 * time that something else is to be registered.
 */
#include "net/reach.h"

/*
 * An allocation may be of a kind that cannot be registered while others can:
 * after so many, nothing more is tried on the port.
 */
#define TRIES 4

static struct net_gpu_way *way_of(struct net *net, struct net_port *port,
				  int gpu)
{
	struct mem_gpu_info info;
	struct net_gpu_way *way;

	for (way = net->ways; way; way = way->next)
		if (way->port == port && way->gpu == gpu)
			return way;
	way = base_alloc(1, sizeof(*way));
	if (!way)
		return NULL;
	way->port = port;
	way->gpu = gpu;
	way->needs_flush = mem_gpu_info(gpu, &info) || info.needs_flush;
	way->next = net->ways;
	net->ways = way;
	return way;
}

static void tell(const struct net_gpu_way *way,
		 const struct net_direct_try *with, bool has_worked)
{
	const struct net_port *port = way->port;
	enum base_log_level level = BASE_LOG_INFO;

	if (has_worked) {
		base_log(level, "%s reaches memory of GPU %d by %s", port->text,
			 way->gpu, net_direct_name(with->how));
		return;
	}
	/* Of the soft device nobody expects it, and who switched it off knows
	 * it. */
	if (!port->is_soft && with->how != NET_DIRECT_NONE)
		level = BASE_LOG_WARN;
	base_log(level,
		 "%s does not reach memory of GPU %d, which goes through "
		 "memory of the host: %s%s", port->text, way->gpu, with->why,
		 level == BASE_LOG_WARN
			 ? "; WREATH_GPU_DIRECT=off says that this is meant"
			 : "");
}

/* NULL in *@out where this allocation cannot be registered. */
static void register_with(struct net *net, struct net_gpu_way *way,
			  const struct mem_region *region, struct ibv_mr **out)
{
	struct net_direct_try with = {
		.device = way->port->device,
		.pd = way->port->pd,
		.env = net->env,
		.base = region->base,
		.bytes = region->bytes,
		.how = way->how,
	};

	*out = NULL;
	if (way->how == NET_DIRECT_NONE)
		return;
	if (!net_direct_register(&with, out)) {
		if (way->how == NET_DIRECT_UNKNOWN)
			tell(way, &with, true);
		way->how = with.how;
		return;
	}
	if (way->how != NET_DIRECT_UNKNOWN)
		return; /* others can: what it was is in the log */
	if (!way->n_failed++)
		tell(way, &with, false);
	if (way->n_failed == TRIES)
		with.how = NET_DIRECT_NONE;
	way->how = with.how;
}

/* Is the allocation still there? */
static bool is_alive(const struct net_mr *mr)
{
	struct mem_region region;

	return mem_gpu_region(mr->base, 1, &region) && region.id == mr->region;
}

static bool overlaps(const struct net_mr *mr, const struct mem_region *region)
{
	return mr->base < region->base + region->bytes &&
	       region->base < mr->base + mr->bytes;
}

/* Free what must not be left, and make room for one more. */
static int make_room(struct net *net, const struct net_port *port,
		     const struct mem_region *region)
{
	struct net_mr **at = &net->mrs;
	struct net_mr **oldest = NULL;
	int n = 0;

	while (*at) {
		struct net_mr *mr = *at;

		if (mr->gpu < 0 || mr->port != port) {
			at = &mr->next;
			continue;
		}
		if (!mr->is_granted &&
		    (overlaps(mr, region) || !is_alive(mr))) {
			net_mr_drop(at);
			continue;
		}
		n++;
		if (!mr->is_granted && (!oldest || mr->used < (*oldest)->used))
			oldest = at;
		at = &mr->next;
	}
	if (n < NET_GPU_MRS)
		return 0;
	if (!oldest)
		return WREATH_EUNSUP;
	net_mr_drop(oldest);
	return 0;
}

static int add(struct net *net, struct net_port *port,
	       const struct mem_region *region, struct net_mr **out)
{
	struct net_gpu_way *way = way_of(net, port, region->gpu);
	struct net_mr *mr;
	int err;

	if (!way)
		return WREATH_ENOMEM;
	err = make_room(net, port, region);
	if (err)
		return err;
	mr = base_alloc(1, sizeof(*mr));
	if (!mr)
		return WREATH_ENOMEM;
	register_with(net, way, region, &mr->mr);
	mr->region = region->id;
	mr->port = port;
	mr->gpu = region->gpu;
	mr->base = region->base;
	mr->bytes = region->bytes;
	mr->next = net->mrs;
	net->mrs = mr;
	*out = mr;
	return 0;
}

int net_gpu_key(struct net *net, struct net_port *port,
		const struct mem_region *region, uint32_t *rkey)
{
	struct net_mr *mr;
	int err = 0;

	for (mr = net->mrs; mr; mr = mr->next)
		if (mr->region == region->id && mr->port == port)
			break;
	if (!mr)
		err = add(net, port, region, &mr);
	if (err)
		return err;
	mr->used = ++net->n_granted;
	/* What could not be registered is remembered, too. */
	if (!mr->mr)
		return WREATH_EUNSUP;
	mr->is_granted = true;
	net->must_flush = true;
	*rkey = mr->mr->rkey;
	return 0;
}

void net_gpu_release(struct net *net)
{
	struct net_gpu_way *way;

	while ((way = net->ways)) {
		net->ways = way->next;
		net_flusher_free(way->flusher);
		base_free(way);
	}
}
