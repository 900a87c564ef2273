/* SPDX-License-Identifier: MIT */
/*
 * librdmacm's identifiers: listeners, and ends of connections.
 *
 * Nothing here knows whether a device is InfiniBand, RoCE or iWARP.  The kernel
 * finds the device by the address, and verbs_cm_qp_attr() asks it what each
 * move of a queue pair needs: on iWARP, which has no GIDs, paths or packet
 * numbers, next to nothing, since there the kernel itself moves it.
 */
#include <errno.h>
#include <string.h>

#include <infiniband/ib.h>

#include "verbs/cm_table.h"

/* Requests that may wait for us; a rank has at most 1024 peers. */
#define CM_BACKLOG 1024

static struct cm_table *const cm = &verbs_cm_table;

union any_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_ib ib;
};

static void fill(const struct verbs_cm_address *address,
		 union any_address *out)
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *raw = address->gid.raw;

	memset(out, 0, sizeof(*out));
	if (address->is_ib) {
		out->ib.sib_family = AF_IB;
		out->ib.sib_pkey = htobe16(address->pkey);
		memcpy(out->ib.sib_addr.sib_raw, raw, 16);
		out->ib.sib_sid =
			htobe64(RDMA_IB_IP_PS_TCP | address->number);
		/* Without a number the kernel chooses within the space. */
		out->ib.sib_sid_mask = address->number
					       ? ~(__be64)0
					       : htobe64(RDMA_IB_IP_PS_MASK);
	} else if (!memcmp(raw, v4, sizeof(v4))) {
		out->v4.sin_family = AF_INET;
		out->v4.sin_port = htobe16(address->number);
		memcpy(&out->v4.sin_addr, raw + 12, 4);
	} else {
		out->v6.sin6_family = AF_INET6;
		out->v6.sin6_port = htobe16(address->number);
		memcpy(&out->v6.sin6_addr, raw, 16);
		out->v6.sin6_scope_id = address->scope;
	}
}

bool verbs_cm_is_on(const struct rdma_cm_id *id,
		    const struct verbs_device *device, int port)
{
	const struct verbs_table *verbs = device->verbs;

	return id->verbs && id->port_num == port &&
	       !strcmp(verbs->get_device_name(id->verbs->device),
		       device->name);
}

int verbs_cm_listen(struct rdma_event_channel *channel,
		    const struct verbs_device *device, int port,
		    struct verbs_cm_address *address, struct rdma_cm_id **out)
{
	union any_address bound;
	struct rdma_cm_id *id;
	int err;

	if (cm->create_id(channel, &id, NULL, RDMA_PS_TCP))
		return verbs_cm_fail("make an identifier");
	fill(address, &bound);
	if (cm->bind_addr(id, &bound.any)) {
		err = verbs_cm_fail("bind to an address of the port");
		goto err_destroy;
	}
	if (!verbs_cm_is_on(id, device, port)) {
		err = base_error(WREATH_ENET,
				 "librdmacm finds another device than %s port "
				 "%d behind the port's address", device->name,
				 port);
		goto err_destroy;
	}
	if (cm->listen(id, CM_BACKLOG)) {
		err = verbs_cm_fail("listen");
		goto err_destroy;
	}
	address->number = be16toh(cm->get_src_port(id));
	*out = id;
	return 0;
err_destroy:
	cm->destroy_id(id);
	return err;
}

/* ---- one connection ---- */

int verbs_cm_resolve(struct rdma_event_channel *channel,
		     const struct verbs_cm_way *way, void *context,
		     struct rdma_cm_id **out)
{
	uint8_t traffic_class = (uint8_t)way->traffic_class;
	uint8_t timeout = way->ack_timeout;
	union any_address from, to;
	struct rdma_cm_id *id;

	if (cm->create_id(channel, &id, context, RDMA_PS_TCP))
		return verbs_cm_fail("make an identifier");
	if (way->traffic_class >= 0 &&
	    cm->set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS,
			  &traffic_class, sizeof(traffic_class)))
		base_log(BASE_LOG_WARN,
			 "librdmacm cannot set the type of service: %s",
			 strerror(errno));
	/* Kernels before 5.1 lack it; the queue pair's own is set anyway. */
	cm->set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
		      sizeof(timeout));
	fill(&way->from, &from);
	fill(&way->to, &to);
	if (cm->resolve_addr(id, &from.any, &to.any, way->timeout_ms)) {
		int err = verbs_cm_fail("resolve the peer's address");

		cm->destroy_id(id);
		return err;
	}
	*out = id;
	return 0;
}

int verbs_cm_route(struct rdma_cm_id *id, int timeout_ms)
{
	if (!cm->resolve_route(id, timeout_ms))
		return 0;
	return verbs_cm_fail("resolve the route to the peer");
}

static void fill_param(const struct verbs_cm_param *param,
		       struct rdma_conn_param *out)
{
	memset(out, 0, sizeof(*out));
	out->private_data = param->data;
	out->private_data_len = param->bytes;
	out->responder_resources = param->n_reads;
	out->initiator_depth = param->n_reads;
	out->retry_count = param->retries;
	out->rnr_retry_count = param->rnr_retries;
	out->qp_num = param->qpn;
}

int verbs_cm_connect(struct rdma_cm_id *id, const struct verbs_cm_param *param)
{
	struct rdma_conn_param out;

	fill_param(param, &out);
	if (!cm->connect(id, &out))
		return 0;
	return verbs_cm_fail("ask for the connection");
}

int verbs_cm_establish(struct rdma_cm_id *id)
{
	if (!cm->establish(id))
		return 0;
	return verbs_cm_fail("establish the connection");
}

int verbs_cm_accept(struct rdma_cm_id *id, const struct verbs_cm_param *param,
		    void *context)
{
	struct rdma_conn_param out;

	fill_param(param, &out);
	id->context = context;
	if (!cm->accept(id, &out))
		return 0;
	return verbs_cm_fail("accept the connection");
}

void verbs_cm_reject(struct rdma_cm_id *id, const void *data, uint8_t bytes)
{
	/* Who asked may be gone already: then nobody needs to be told. */
	cm->reject(id, data, bytes);
	cm->destroy_id(id);
}

int verbs_cm_qp_attr(struct rdma_cm_id *id, enum ibv_qp_state state,
		     struct ibv_qp_attr *attr, int *mask)
{
	/* Alternate paths, and bits that only kernels know, are left out. */
	static const int known =
		IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
		IBV_QP_PORT | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
		IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

	memset(attr, 0, sizeof(*attr));
	attr->qp_state = state;
	if (cm->init_qp_attr(id, attr, mask))
		return verbs_cm_fail("tell what the queue pair needs");
	attr->qp_state = state;
	*mask &= known;
	return 0;
}

void verbs_cm_free(struct rdma_cm_id *id)
{
	if (!id)
		return;
	/* Refused where it is not connected, or not any more: as well. */
	cm->disconnect(id);
	if (cm->destroy_id(id))
		base_log(BASE_LOG_WARN, "librdmacm cannot free an identifier: "
					"%s", strerror(errno));
}
