/* SPDX-License-Identifier: MIT */
/* Address handles from the completion of what has come. */
#include <arpa/inet.h>
#include <string.h>

#include "dropin.h"

/* The index in our table of the GID that was written to, or -1. */
static int find_gid(struct ibv_context *context, uint8_t port,
		    const union ibv_gid *gid)
{
	struct ibv_port_attr attr;
	union ibv_gid mine;
	int i;

	if (dropin_soft()->query_port(context, port, &attr))
		return -1;
	for (i = 0; i < attr.gid_tbl_len; i++) {
		if (!ibv_query_gid(context, port, i, &mine) &&
		    !memcmp(&mine, gid, sizeof(mine)))
			return i;
	}
	return -1;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port,
			struct ibv_wc *wc, struct ibv_grh *grh,
			struct ibv_ah_attr *attr)
{
	uint32_t word;
	int index;

	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = port;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	attr->is_global = 1;
	attr->grh.dgid = grh->sgid;
	index = find_gid(context, port, &grh->dgid);
	if (index < 0)
		return -1;
	attr->grh.sgid_index = (uint8_t)index;
	word = ntohl(grh->version_tclass_flow);
	attr->grh.flow_label = word & 0xfffff;
	attr->grh.traffic_class = word >> 20 & 0xff;
	attr->grh.hop_limit = grh->hop_limit;
	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
				     struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}
