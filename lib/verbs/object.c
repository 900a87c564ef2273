/* SPDX-License-Identifier: MIT */
/*
 * Objects of a device.  libibverbs reports in three ways: NULL with errno, a
 * positive errno, -1 with errno.  Here they become one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "verbs/verbs.h"

static int cause(int ret)
{
	return ret > 0 ? ret : errno;
}

static int code(int cause)
{
	switch (cause) {
	case ENOMEM:
	case EMFILE:
	case ENFILE:
	case EAGAIN:
		return WREATH_ENOMEM;
	case EOPNOTSUPP:
	case ENOSYS:
		return WREATH_EUNSUP;
	case EINVAL:
		return WREATH_EINVAL;
	/* From the kernel's search for a route and a neighbour. */
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EADDRNOTAVAIL:
	case ENETDOWN:
		return WREATH_ENET;
	}
	return WREATH_EDEVICE;
}

static int fail(const struct verbs_device *device, const char *what, int why)
{
	return base_error(code(why), "%s: cannot %s: %s", device->name, what,
			  strerror(why));
}

static void warn(const struct verbs_device *device, const char *what, int ret)
{
	if (ret)
		base_log(BASE_LOG_WARN, "%s: cannot %s: %s", device->name, what,
			 strerror(cause(ret)));
}

int verbs_pd_new(struct verbs_device *device, struct ibv_pd **out)
{
	struct ibv_pd *pd = device->verbs->alloc_pd(device->context);

	if (!pd)
		return fail(device, "make a protection domain", errno);
	*out = pd;
	return 0;
}

void verbs_pd_free(struct verbs_device *device, struct ibv_pd *pd)
{
	if (pd)
		warn(device, "free a protection domain",
		     device->verbs->dealloc_pd(pd));
}

/* Bytes that the process has locked and pinned, by the kernel's account. */
static unsigned long long bytes_locked(void)
{
	static const char *const names[] = {"\nVmLck:", "\nVmPin:"};
	unsigned long long kib = 0;
	char text[4096];
	ssize_t n;
	size_t i;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	for (i = 0; i < base_countof(names); i++) {
		const char *at = strstr(text, names[i]);

		if (at)
			kib += strtoull(at + strlen(names[i]), NULL, 10);
	}
	return kib << 10;
}

/*
 * "": memory is not what was missing.  Else out of memory, or of what may be
 * locked: nobody tells which.
 */
static const char *memlock_text(int why, size_t bytes, char out[512])
{
	struct rlimit limit;
	char need[64] = "";

	out[0] = 0;
	if (why != ENOMEM || getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY)
		return out;
	if (bytes)
		snprintf(need, sizeof(need), " and at least %llu are needed",
			 bytes_locked() + bytes);
	snprintf(out, 512,
		 "; RLIMIT_MEMLOCK may be the cause, which lets this process "
		 "lock %llu bytes, of which %llu are locked%s: raise it by "
		 "`ulimit -l unlimited` in a shell, LimitMEMLOCK=infinity in "
		 "a systemd unit, --ulimit memlock=-1 for a container",
		 (unsigned long long)limit.rlim_cur, bytes_locked(), need);
	return out;
}

static int mr_failed(const struct verbs_device *device, size_t bytes, int why)
{
	char memlock[512];

	return base_error(code(why), "%s: cannot register %zu bytes: %s%s",
			  device->name, bytes, strerror(why),
			  memlock_text(why, bytes, memlock));
}

int verbs_mr_new(struct verbs_device *device, struct ibv_pd *pd, void *addr,
		 size_t bytes, int fd, uint64_t fd_offset, int access,
		 struct ibv_mr **out)
{
	const struct verbs_table *verbs = device->verbs;
	struct ibv_mr *mr = NULL;

	/* Hardware takes DMA-BUFs only, and a memfd is none; it registers by
	 * address.  A device that maps memory wants the descriptor. */
	if (fd >= 0 && verbs->map && verbs->reg_dmabuf_mr)
		mr = verbs->reg_dmabuf_mr(pd, fd_offset, bytes, (uintptr_t)addr,
					  fd, access);
	else
		mr = verbs->reg_mr(pd, addr, bytes, access);
	if (!mr)
		return mr_failed(device, bytes, errno);
	*out = mr;
	return 0;
}

int verbs_mr_dmabuf(struct verbs_device *device, struct ibv_pd *pd, int fd,
		    uint64_t offset, size_t bytes, uint64_t iova, int access,
		    struct ibv_mr **out)
{
	const struct verbs_table *verbs = device->verbs;
	struct ibv_mr *mr;
	int why;

	if (!verbs->reg_dmabuf_mr)
		return base_error(WREATH_EUNSUP,
				  "%s: this %s registers no DMA-BUF: install "
				  "rdma-core 34 or newer", device->name,
				  verbs->name);
	mr = verbs->reg_dmabuf_mr(pd, offset, bytes, iova, fd, access);
	why = errno;
	if (mr)
		*out = mr;
	else if (why == EOPNOTSUPP || why == ENOSYS || why == EPROTONOSUPPORT)
		return base_error(WREATH_EUNSUP,
				  "%s: its driver or the kernel registers no "
				  "DMA-BUF such as this of %zu bytes (%s); "
				  "Linux 5.12 or newer does",
				  device->name, bytes, strerror(why));
	return mr ? 0 : mr_failed(device, bytes, why);
}

void verbs_mr_free(struct verbs_device *device, struct ibv_mr *mr)
{
	if (mr)
		warn(device, "deregister memory", device->verbs->dereg_mr(mr));
}

int verbs_channel_new(struct verbs_device *device,
		      struct ibv_comp_channel **out)
{
	struct ibv_comp_channel *channel =
		device->verbs->create_comp_channel(device->context);

	if (!channel)
		return fail(device, "make a completion channel", errno);
	*out = channel;
	return 0;
}

void verbs_channel_free(struct verbs_device *device,
			struct ibv_comp_channel *channel)
{
	if (channel)
		warn(device, "free a completion channel",
		     device->verbs->destroy_comp_channel(channel));
}

int verbs_cq_new(struct verbs_device *device, int n_cqe,
		 struct ibv_comp_channel *channel, struct ibv_cq **out)
{
	struct ibv_cq *cq = device->verbs->create_cq(device->context, n_cqe,
						     NULL, channel, 0);
	int why = errno;
	char memlock[512];

	if (!cq)
		return base_error(code(why),
				  "%s: cannot make a completion queue of %d "
				  "entries (it takes %d): %s%s", device->name,
				  n_cqe, device->attr.max_cqe, strerror(why),
				  memlock_text(why, 0, memlock));
	*out = cq;
	return 0;
}

void verbs_cq_free(struct verbs_device *device, struct ibv_cq *cq)
{
	if (cq)
		warn(device, "free a completion queue",
		     device->verbs->destroy_cq(cq));
}

int verbs_qp_new(struct verbs_device *device, struct ibv_pd *pd,
		 struct ibv_qp_init_attr *attr, struct ibv_qp **out)
{
	struct ibv_qp *qp = device->verbs->create_qp(pd, attr);
	int why = errno;
	char memlock[512];

	if (!qp)
		return base_error(code(why),
				  "%s: cannot make a queue pair of %u send and "
				  "%u receive requests with %u bytes inline: "
				  "%s%s", device->name, attr->cap.max_send_wr,
				  attr->cap.max_recv_wr,
				  attr->cap.max_inline_data, strerror(why),
				  memlock_text(why, 0, memlock));
	*out = qp;
	return 0;
}

void verbs_qp_free(struct verbs_device *device, struct ibv_qp *qp)
{
	if (qp)
		warn(device, "free a queue pair",
		     device->verbs->destroy_qp(qp));
}

static const char *state_name(enum ibv_qp_state state)
{
	switch (state) {
	case IBV_QPS_RESET:
		return "RESET";
	case IBV_QPS_INIT:
		return "INIT";
	case IBV_QPS_RTR:
		return "RTR";
	case IBV_QPS_RTS:
		return "RTS";
	case IBV_QPS_ERR:
		return "ERR";
	default:
		return "another state";
	}
}

int verbs_qp_modify(struct verbs_device *device, struct ibv_qp *qp,
		    struct ibv_qp_attr *attr, int mask)
{
	int why;
	int ret = device->verbs->modify_qp(qp, attr, mask);

	if (!ret)
		return 0;
	why = cause(ret);
	return base_error(code(why),
			  "%s: cannot move queue pair 0x%x to %s: %s%s",
			  device->name, qp->qp_num,
			  state_name(attr->qp_state), strerror(why),
			  attr->qp_state == IBV_QPS_RTR
				  ? "; is there a route to the peer's GID?"
				  : "");
}

int verbs_ah_try(struct verbs_device *device, struct ibv_pd *pd,
		 struct ibv_ah_attr *attr)
{
	struct ibv_ah *ah = device->verbs->create_ah(pd, attr);

	if (!ah)
		return fail(device, "make an address handle", errno);
	warn(device, "free an address handle", device->verbs->destroy_ah(ah));
	return 0;
}
