/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "verbs/verbs.h"

int verbs_list(const struct verbs_table *verbs, struct verbs_name *names,
	       int max, int *n)
{
	struct ibv_device **list;
	int i, count = 0;

	errno = 0;
	list = verbs->get_device_list(&count);
	if (!list) {
		/* Without the kernel's modules there simply is no device. */
		if (errno == ENOSYS || errno == ENOENT) {
			*n = 0;
			return 0;
		}
		return base_error(WREATH_EDEVICE,
				  "%s cannot list its devices: %s",
				  verbs->name, strerror(errno));
	}
	for (i = 0; i < count && i < max; i++)
		snprintf(names[i].name, sizeof(names[i].name), "%s",
			 verbs->get_device_name(list[i]));
	verbs->free_device_list(list);
	*n = count;
	return 0;
}

/* @file becomes the device's in /dev/infiniband, "uverbs0". */
static struct ibv_context *open_by_name(const struct verbs_table *verbs,
					const char *name, char file[64])
{
	struct ibv_context *context = NULL;
	int i, n = 0;
	struct ibv_device **list = verbs->get_device_list(&n);

	if (!list)
		return NULL;
	errno = ENODEV;
	for (i = 0; i < n; i++) {
		if (strcmp(verbs->get_device_name(list[i]), name))
			continue;
		snprintf(file, 64, "%s", list[i]->dev_name);
		context = verbs->open_device(list[i]);
		break;
	}
	verbs->free_device_list(list);
	return context;
}

/*
 * libibverbs looks for the file in several ways, and tells of the last: what
 * is wrong with it is asked again here.
 */
static int open_failed(const struct verbs_table *verbs, const char *name,
		       const char *file, int why)
{
	char path[96];

	snprintf(path, sizeof(path), "/dev/infiniband/%s", file);
	if (*file && why == ENOENT &&
	    faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS))
		why = errno;
	if (why == EACCES || why == EPERM)
		return base_error(WREATH_EDEVICE,
				  "cannot open %s of %s: %s: user %u may not "
				  "open %s; give it mode 0666, or to a group "
				  "of the user, by a udev rule, and a "
				  "container the device (--device "
				  "/dev/infiniband)", name, verbs->name,
				  strerror(why), geteuid(), path);
	if (why == ENOENT)
		return base_error(WREATH_EDEVICE,
				  "cannot open %s of %s: there is no %s; load "
				  "ib_uverbs, or give a container the device "
				  "(--device /dev/infiniband)", name,
				  verbs->name, path);
	return base_error(WREATH_EDEVICE, "cannot open %s of %s: %s", name,
			  verbs->name, strerror(why));
}

int verbs_device_open(const struct verbs_table *verbs, const char *name,
		      struct verbs_device **out)
{
	struct verbs_device *device = base_alloc(1, sizeof(*device));
	char file[64] = "";
	int err;

	if (!device)
		return WREATH_ENOMEM;
	device->verbs = verbs;
	snprintf(device->name, sizeof(device->name), "%s", name);
	device->context = open_by_name(verbs, name, file);
	if (!device->context) {
		err = open_failed(verbs, name, file, errno);
		goto err_free;
	}
	err = verbs->query_device(device->context, &device->attr);
	if (err) {
		err = base_error(WREATH_EDEVICE, "cannot query %s: %s", name,
				 strerror(err > 0 ? err : errno));
		goto err_close;
	}
	if (verbs->pace)
		verbs->pace(device->context, &device->pace);
	*out = device;
	return 0;
err_close:
	verbs->close_device(device->context);
err_free:
	base_free(device);
	return err;
}

void verbs_device_close(struct verbs_device *device)
{
	if (!device)
		return;
	if (device->verbs->close_device(device->context))
		base_log(BASE_LOG_WARN, "cannot close %s: something of it is "
					"in use", device->name);
	base_free(device);
}

int verbs_port(struct verbs_device *device, int port,
	       struct ibv_port_attr *attr)
{
	int err;

	memset(attr, 0, sizeof(*attr));
	err = device->verbs->query_port(device->context, (uint8_t)port, attr);
	if (!err)
		return 0;
	return base_error(WREATH_EDEVICE, "cannot query port %d of %s: %s",
			  port, device->name, strerror(err > 0 ? err : errno));
}

/* Of a lane, by the bit of PortInfo's LinkSpeedActive. */
static const uint32_t lane_mbps[] = {
	2500 /* SDR */, 5000 /* DDR */,	  10000 /* QDR */,  10000 /* FDR10 */,
	14000 /* FDR */, 25000 /* EDR */, 50000 /* HDR */, 100000 /* NDR */,
};

static uint32_t n_lanes(unsigned int width)
{
	switch (width) {
	case 1:
		return 1;
	case 2:
		return 4;
	case 4:
		return 8;
	case 8:
		return 12;
	case 16:
		return 2;
	}
	return 0;
}

uint32_t verbs_port_mbps(const struct ibv_port_attr *attr)
{
	unsigned int speed = attr->active_speed;

	/* One bit, or it is no speed of a lane. */
	if (!speed || (speed & (speed - 1)))
		return 0;
	return lane_mbps[__builtin_ctz(speed)] * n_lanes(attr->active_width);
}

uint32_t verbs_mbps(const struct verbs_device *device,
		    const struct ibv_port_attr *attr)
{
	uint64_t mbps = device->pace.bits / 1000000u;

	if (!device->pace.bits)
		return verbs_port_mbps(attr);
	if (!mbps)
		return 1;
	return mbps < UINT32_MAX ? (uint32_t)mbps : UINT32_MAX;
}

static int query_gid(struct verbs_device *device, int port, int index,
		     struct ibv_gid_entry *entry)
{
	return device->verbs->query_gid_ex(device->context, (uint32_t)port,
					   (uint32_t)index, entry, 0,
					   sizeof(*entry));
}

bool verbs_gid_try(struct verbs_device *device, int port, int index,
		   struct ibv_gid_entry *entry)
{
	return !query_gid(device, port, index, entry);
}

int verbs_gid(struct verbs_device *device, int port, int index,
	      struct ibv_gid_entry *entry)
{
	int err = query_gid(device, port, index, entry);

	if (!err)
		return 0;
	return base_error(WREATH_EINVAL, "GID %d of %s port %d: %s", index,
			  device->name, port, strerror(err > 0 ? err : errno));
}

int verbs_pkey(struct verbs_device *device, int port, int index,
	       uint16_t *pkey)
{
	__be16 value;

	if (device->verbs->query_pkey(device->context, (uint8_t)port, index,
				      &value))
		return base_error(WREATH_EINVAL, "P_Key %d of %s port %d: %s",
				  index, device->name, port, strerror(errno));
	*pkey = be16toh(value);
	return 0;
}

static const char *const wc_names[] = {
	[IBV_WC_SUCCESS] = "IBV_WC_SUCCESS",
	[IBV_WC_LOC_LEN_ERR] = "IBV_WC_LOC_LEN_ERR",
	[IBV_WC_LOC_QP_OP_ERR] = "IBV_WC_LOC_QP_OP_ERR",
	[IBV_WC_LOC_EEC_OP_ERR] = "IBV_WC_LOC_EEC_OP_ERR",
	[IBV_WC_LOC_PROT_ERR] = "IBV_WC_LOC_PROT_ERR",
	[IBV_WC_WR_FLUSH_ERR] = "IBV_WC_WR_FLUSH_ERR",
	[IBV_WC_MW_BIND_ERR] = "IBV_WC_MW_BIND_ERR",
	[IBV_WC_BAD_RESP_ERR] = "IBV_WC_BAD_RESP_ERR",
	[IBV_WC_LOC_ACCESS_ERR] = "IBV_WC_LOC_ACCESS_ERR",
	[IBV_WC_REM_INV_REQ_ERR] = "IBV_WC_REM_INV_REQ_ERR",
	[IBV_WC_REM_ACCESS_ERR] = "IBV_WC_REM_ACCESS_ERR",
	[IBV_WC_REM_OP_ERR] = "IBV_WC_REM_OP_ERR",
	[IBV_WC_RETRY_EXC_ERR] = "IBV_WC_RETRY_EXC_ERR",
	[IBV_WC_RNR_RETRY_EXC_ERR] = "IBV_WC_RNR_RETRY_EXC_ERR",
	[IBV_WC_LOC_RDD_VIOL_ERR] = "IBV_WC_LOC_RDD_VIOL_ERR",
	[IBV_WC_REM_INV_RD_REQ_ERR] = "IBV_WC_REM_INV_RD_REQ_ERR",
	[IBV_WC_REM_ABORT_ERR] = "IBV_WC_REM_ABORT_ERR",
	[IBV_WC_INV_EECN_ERR] = "IBV_WC_INV_EECN_ERR",
	[IBV_WC_INV_EEC_STATE_ERR] = "IBV_WC_INV_EEC_STATE_ERR",
	[IBV_WC_FATAL_ERR] = "IBV_WC_FATAL_ERR",
	[IBV_WC_RESP_TIMEOUT_ERR] = "IBV_WC_RESP_TIMEOUT_ERR",
	[IBV_WC_GENERAL_ERR] = "IBV_WC_GENERAL_ERR",
};

const char *verbs_wc_name(enum ibv_wc_status status)
{
	size_t at = (size_t)status;

	if (at < base_countof(wc_names) && wc_names[at])
		return wc_names[at];
	return "an unknown completion status";
}

static const char *const event_names[] = {
	[IBV_EVENT_CQ_ERR] = "IBV_EVENT_CQ_ERR",
	[IBV_EVENT_QP_FATAL] = "IBV_EVENT_QP_FATAL",
	[IBV_EVENT_QP_REQ_ERR] = "IBV_EVENT_QP_REQ_ERR",
	[IBV_EVENT_QP_ACCESS_ERR] = "IBV_EVENT_QP_ACCESS_ERR",
	[IBV_EVENT_COMM_EST] = "IBV_EVENT_COMM_EST",
	[IBV_EVENT_SQ_DRAINED] = "IBV_EVENT_SQ_DRAINED",
	[IBV_EVENT_PATH_MIG] = "IBV_EVENT_PATH_MIG",
	[IBV_EVENT_PATH_MIG_ERR] = "IBV_EVENT_PATH_MIG_ERR",
	[IBV_EVENT_DEVICE_FATAL] = "IBV_EVENT_DEVICE_FATAL",
	[IBV_EVENT_PORT_ACTIVE] = "IBV_EVENT_PORT_ACTIVE",
	[IBV_EVENT_PORT_ERR] = "IBV_EVENT_PORT_ERR",
	[IBV_EVENT_LID_CHANGE] = "IBV_EVENT_LID_CHANGE",
	[IBV_EVENT_PKEY_CHANGE] = "IBV_EVENT_PKEY_CHANGE",
	[IBV_EVENT_SM_CHANGE] = "IBV_EVENT_SM_CHANGE",
	[IBV_EVENT_SRQ_ERR] = "IBV_EVENT_SRQ_ERR",
	[IBV_EVENT_SRQ_LIMIT_REACHED] = "IBV_EVENT_SRQ_LIMIT_REACHED",
	[IBV_EVENT_QP_LAST_WQE_REACHED] = "IBV_EVENT_QP_LAST_WQE_REACHED",
	[IBV_EVENT_CLIENT_REREGISTER] = "IBV_EVENT_CLIENT_REREGISTER",
	[IBV_EVENT_GID_CHANGE] = "IBV_EVENT_GID_CHANGE",
};

const char *verbs_event_name(enum ibv_event_type type)
{
	size_t at = (size_t)type;

	if (at < base_countof(event_names) && event_names[at])
		return event_names[at];
	return "an unknown event";
}
