/* SPDX-License-Identifier: MIT */
/* Registering memory of a GPU with a port, by one of two ways. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "net/reach.h"

/* The order of WREATH_GPU_DIRECT's words. */
enum setting {
	SETTING_AUTO,
	SETTING_DMABUF,
	SETTING_PEERMEM,
	SETTING_OFF,
};

const char *net_direct_name(enum net_direct how)
{
	switch (how) {
	case NET_DIRECT_DMABUF:
		return "DMA-BUF";
	case NET_DIRECT_PEERMEM:
		return "nvidia-peermem";
	default:
		return "memory of the host";
	}
}

/* A module that is built in is there as well; the older name came with the
 * network driver. */
static bool has_peermem(void)
{
	return !access("/sys/module/nvidia_peermem", F_OK) ||
	       !access("/sys/module/nv_peer_mem", F_OK);
}

static void add_why(struct net_direct_try *with, const char *what,
		    const char *remedy)
{
	size_t at = strlen(with->why);

	snprintf(with->why + at, sizeof(with->why) - at, "%s%s: %.300s%s",
		 at ? "; " : "", what, base_error_text(), remedy);
}

static int by_dmabuf(struct net_direct_try *with, struct ibv_mr **out)
{
	uint64_t offset;
	int err, fd;

	err = mem_dmabuf(with->base, with->bytes, &fd, &offset);
	if (!err) {
		err = verbs_mr_dmabuf(with->device, with->pd, fd, offset,
				      with->bytes, (uintptr_t)with->base,
				      NET_MR_ACCESS, out);
		close(fd);
	}
	if (err)
		add_why(with, "DMA-BUF", "");
	return err;
}

/* Its kernel module is asked by whoever registers by address. */
static int by_peermem(struct net_direct_try *with, struct ibv_mr **out)
{
	bool is_soft = with->device->verbs->map != NULL;
	int err = verbs_mr_new(with->device, with->pd, with->base, with->bytes,
			       -1, 0, NET_MR_ACCESS, out);

	if (err)
		add_why(with, "nvidia-peermem",
			is_soft || has_peermem()
				? ""
				: " (the module nvidia_peermem is not loaded; "
				  "`modprobe nvidia-peermem` loads it)");
	return err;
}

int net_direct_register(struct net_direct_try *with, struct ibv_mr **out)
{
	int64_t setting = with->env->value[BASE_ENV_GPU_DIRECT];
	enum net_direct how = with->how;

	with->why[0] = 0;
	if (setting == SETTING_OFF) {
		with->how = NET_DIRECT_NONE;
		snprintf(with->why, sizeof(with->why),
			 "WREATH_GPU_DIRECT=off");
		return WREATH_EUNSUP;
	}
	if ((how == NET_DIRECT_DMABUF ||
	     (how == NET_DIRECT_UNKNOWN && setting != SETTING_PEERMEM)) &&
	    !by_dmabuf(with, out)) {
		with->how = NET_DIRECT_DMABUF;
		return 0;
	}
	if ((how == NET_DIRECT_PEERMEM ||
	     (how == NET_DIRECT_UNKNOWN && setting != SETTING_DMABUF)) &&
	    !by_peermem(with, out)) {
		with->how = NET_DIRECT_PEERMEM;
		return 0;
	}
	return WREATH_EUNSUP;
}

/* A page of the GPU's own, so that no user's allocation is needed. */
#define PROBE_BYTES (64 << 10)

void net_gpu_text(struct verbs_device *device, int gpu,
		  const struct base_env *env, char *out, size_t size)
{
	struct net_direct_try with = {.device = device, .env = env,
				      .bytes = PROBE_BYTES};
	struct ibv_mr *mr;
	void *probe;

	if (mem_gpu_alloc(PROBE_BYTES, gpu, &probe)) {
		snprintf(out, size, "not known: %s", base_error_text());
		return;
	}
	with.base = probe;
	if (verbs_pd_new(device, &with.pd)) {
		snprintf(out, size, "not known: %s", base_error_text());
		goto out_free;
	}
	if (net_direct_register(&with, &mr)) {
		snprintf(out, size, "through memory of the host: %s",
			 with.why);
	} else {
		snprintf(out, size, "by %s", net_direct_name(with.how));
		verbs_mr_free(device, mr);
	}
	verbs_pd_free(device, with.pd);
out_free:
	mem_free(probe);
}
