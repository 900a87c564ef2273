/* SPDX-License-Identifier: MIT */
/*
 * librdmacm: loading it, and the events that it brings.  Every call of it
 * returns 0, or -1 with errno; here that becomes one of our errors.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "verbs/cm_table.h"
#include "verbs/load.h"

#define AT(field) offsetof(struct cm_table, field)

static const struct verbs_symbol symbols[] = {
	{"rdma_create_event_channel", "RDMACM_1.0",
	 AT(create_event_channel), false},
	{"rdma_destroy_event_channel", "RDMACM_1.0",
	 AT(destroy_event_channel), false},
	{"rdma_create_id", "RDMACM_1.0", AT(create_id), false},
	{"rdma_destroy_id", "RDMACM_1.0", AT(destroy_id), false},
	{"rdma_bind_addr", "RDMACM_1.0", AT(bind_addr), false},
	{"rdma_listen", "RDMACM_1.0", AT(listen), false},
	{"rdma_resolve_addr", "RDMACM_1.0", AT(resolve_addr), false},
	{"rdma_resolve_route", "RDMACM_1.0", AT(resolve_route), false},
	{"rdma_connect", "RDMACM_1.0", AT(connect), false},
	/* These two came in 2018, for queue pairs that are not librdmacm's. */
	{"rdma_establish", "RDMACM_1.2", AT(establish), false},
	{"rdma_init_qp_attr", "RDMACM_1.2", AT(init_qp_attr), false},
	{"rdma_accept", "RDMACM_1.0", AT(accept), false},
	{"rdma_reject", "RDMACM_1.0", AT(reject), false},
	{"rdma_disconnect", "RDMACM_1.0", AT(disconnect), false},
	{"rdma_set_option", "RDMACM_1.0", AT(set_option), false},
	{"rdma_get_cm_event", "RDMACM_1.0", AT(get_cm_event), false},
	{"rdma_ack_cm_event", "RDMACM_1.0", AT(ack_cm_event), false},
	{"rdma_event_str", "RDMACM_1.0", AT(event_str), false},
	{"rdma_get_src_port", "RDMACM_1.0", AT(get_src_port), false},
};

struct cm_table verbs_cm_table;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char reason[256]; /* why it cannot be used; "" if it can */

static void load(void)
{
	verbs_load("librdmacm.so.1", symbols, base_countof(symbols),
		   &verbs_cm_table, reason);
}

int verbs_cm_fail(const char *what)
{
	int why = errno;
	int code = why == ENOMEM ? WREATH_ENOMEM : WREATH_ENET;

	return base_error(code, "librdmacm cannot %s: %s", what,
			  strerror(why));
}

/* ---- channels ---- */

static int open_failed(int why)
{
	switch (why) {
	case EACCES:
		return base_error(WREATH_EDEVICE,
				  "/dev/infiniband/rdma_cm cannot be opened: "
				  "%s; it must be open to this user for "
				  "WREATH_CONNECT=cm", strerror(why));
	case EMFILE:
	case ENFILE:
	case ENOMEM:
		return base_error(WREATH_ENOMEM,
				  "/dev/infiniband/rdma_cm cannot be opened: "
				  "%s", strerror(why));
	}
	return base_error(WREATH_EUNSUP,
			  "librdmacm cannot be used: /dev/infiniband/rdma_cm "
			  "cannot be opened (%s): load the kernel's module "
			  "rdma_ucm (`modprobe rdma_ucm`), give a container "
			  "the device, or leave WREATH_CONNECT unset",
			  strerror(why));
}

int verbs_cm_open(struct rdma_event_channel **out)
{
	struct rdma_event_channel *channel;
	int flags;

	pthread_once(&once, load);
	if (*reason)
		return base_error(WREATH_EUNSUP,
				  "librdmacm cannot be used: %s; install it "
				  "(package librdmacm1), or leave "
				  "WREATH_CONNECT unset", reason);
	errno = ENODEV;
	channel = verbs_cm_table.create_event_channel();
	if (!channel)
		return open_failed(errno);
	/* It is polled; a read must never hang for an event that is gone. */
	flags = fcntl(channel->fd, F_GETFL);
	if (flags < 0 ||
	    fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		verbs_cm_table.destroy_event_channel(channel);
		return base_error(WREATH_EDEVICE,
				  "librdmacm's channel cannot be made "
				  "non-blocking");
	}
	*out = channel;
	return 0;
}

int verbs_cm_fd(const struct rdma_event_channel *channel)
{
	return channel->fd;
}

void verbs_cm_close(struct rdma_event_channel *channel)
{
	if (channel)
		verbs_cm_table.destroy_event_channel(channel);
}

/* ---- events ---- */

static enum verbs_cm_what what_of(const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return VERBS_CM_ADDRESS;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return VERBS_CM_ROUTE;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return VERBS_CM_REQUEST;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		return VERBS_CM_REPLY;
	case RDMA_CM_EVENT_ESTABLISHED:
		return VERBS_CM_ESTABLISHED;
	case RDMA_CM_EVENT_REJECTED:
		return VERBS_CM_REJECTED;
	case RDMA_CM_EVENT_DISCONNECTED:
		return VERBS_CM_DISCONNECTED;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return VERBS_CM_GONE;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return VERBS_CM_FAILED;
	default:
		return VERBS_CM_NOTHING;
	}
}

/* Private data that comes with what carries none is not there at all. */
static void take_data(const struct rdma_cm_event *from,
		      struct verbs_cm_event *event)
{
	const struct rdma_conn_param *param = &from->param.conn;

	if (event->what != VERBS_CM_REQUEST && event->what != VERBS_CM_REPLY &&
	    event->what != VERBS_CM_ESTABLISHED &&
	    event->what != VERBS_CM_REJECTED)
		return;
	event->qpn = param->qp_num;
	if (!param->private_data)
		return;
	event->bytes = param->private_data_len;
	memcpy(event->data, param->private_data, event->bytes);
}

int verbs_cm_event(struct rdma_event_channel *channel,
		   struct verbs_cm_event *event)
{
	struct rdma_cm_event *from;

	memset(event, 0, sizeof(*event));
	if (verbs_cm_table.get_cm_event(channel, &from)) {
		if (errno == EAGAIN || errno == EINTR)
			return WREATH_EAGAIN;
		return verbs_cm_fail("read its events");
	}
	event->what = what_of(from);
	event->id = from->id;
	event->context = from->id->context;
	take_data(from, event);
	snprintf(event->text, sizeof(event->text), "%s, status %d",
		 verbs_cm_table.event_str(from->event), from->status);
	/* At once: freeing an identifier waits for its events' end. */
	verbs_cm_table.ack_cm_event(from);
	return 0;
}
