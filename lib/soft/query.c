/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "soft/entry.h"
#include "soft/queue.h"

/* Empty entries of the table read as zero, as on hardware. */
#define GID_TABLE 4

int soft_query_device(struct ibv_context *context,
		      struct ibv_device_attr *attr)
{
	struct soft_context *c = soft_context_of(context);

	if (soft_is_foreign(c) || c->is_gone)
		return EIO;
	memset(attr, 0, sizeof(*attr));
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "soft");
	attr->node_guid = c->guid;
	attr->sys_image_guid = c->guid;
	attr->vendor_id = 0xffffff; /* no vendor's OUI */
	attr->max_mr_size = UINT64_MAX;
	attr->page_size_cap = 0xfffff000;
	attr->max_qp = SOFT_N_QP;
	attr->max_qp_wr = SOFT_MAX_WR;
	attr->max_sge = SOFT_MAX_SGE;
	attr->device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD |
				 IBV_DEVICE_PORT_ACTIVE_EVENT |
				 IBV_DEVICE_SYS_IMAGE_GUID |
				 IBV_DEVICE_RC_RNR_NAK_GEN;
	attr->max_sge_rd = SOFT_MAX_SGE;
	attr->max_cq = SOFT_N_CQ;
	attr->max_cqe = SOFT_MAX_CQE;
	attr->max_mr = SOFT_N_MR;
	attr->max_pd = SOFT_N_MR;
	attr->max_qp_rd_atom = 16;
	attr->max_res_rd_atom = 16 * SOFT_N_QP;
	attr->max_qp_init_rd_atom = 16;
	attr->atomic_cap = IBV_ATOMIC_HCA;
	attr->max_srq = SOFT_N_SRQ;
	attr->max_srq_wr = SOFT_MAX_WR;
	attr->max_srq_sge = SOFT_MAX_SGE;
	attr->max_ah = SOFT_N_AH;
	attr->max_pkeys = 1;
	attr->local_ca_ack_delay = 0;
	attr->phys_port_cnt = 1;
	return 0;
}

/*
 * The width and speed next to a rate, and not above it unless it is below all:
 * who needs it exactly asks for the pace.
 */
static void put_rate(const struct verbs_pace *pace, struct ibv_port_attr *attr)
{
	static const uint8_t widths[] = {2 /* 4X */, 1, 16 /* 2X */, 4, 8};
	uint32_t best = 0;
	size_t i;
	int bit;

	attr->active_width = 2; /* 4X */
	attr->active_speed = 64; /* HDR */
	if (!pace->bits)
		return;
	attr->active_width = 1;
	attr->active_speed = 1;
	for (i = 0; i < base_countof(widths); i++) {
		for (bit = 0; bit < 8; bit++) {
			struct ibv_port_attr at = {
				.active_width = widths[i],
				.active_speed = (uint8_t)(1 << bit),
			};
			uint32_t mbps = verbs_port_mbps(&at);

			if (mbps <= best || mbps * 1000000ull > pace->bits)
				continue;
			best = mbps;
			attr->active_width = at.active_width;
			attr->active_speed = at.active_speed;
		}
	}
}

void soft_pace_query(struct ibv_context *context, struct verbs_pace *out)
{
	*out = soft_context_of(context)->pace;
}

int soft_query_port(struct ibv_context *context, uint8_t port,
		    struct ibv_port_attr *attr)
{
	struct soft_context *c = soft_context_of(context);

	if (soft_is_foreign(c) || c->is_gone)
		return EIO;
	if (port != 1)
		return EINVAL;
	memset(attr, 0, sizeof(*attr));
	attr->state = c->is_down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
	attr->max_mtu = IBV_MTU_4096;
	attr->active_mtu = IBV_MTU_4096;
	attr->gid_tbl_len = GID_TABLE;
	attr->port_cap_flags = IBV_PORT_CM_SUP;
	attr->max_msg_sz = 1u << 31;
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	put_rate(&c->pace, attr);
	attr->phys_state = c->is_down ? 3 : 5; /* disabled, link up */
	if (c->device->kind == SOFT_INFINIBAND) {
		attr->link_layer = IBV_LINK_LAYER_INFINIBAND;
		attr->lid = c->address.lid;
		attr->sm_lid = 1;
	} else {
		attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	}
	return 0;
}

int soft_query_gid(struct ibv_context *context, uint8_t port, int index,
		   union ibv_gid *gid)
{
	struct soft_context *c = soft_context_of(context);

	if (soft_is_foreign(c) || c->is_gone) {
		errno = EIO;
		return -1;
	}
	if (port != 1 || index < 0 || index >= GID_TABLE) {
		errno = EINVAL;
		return -1;
	}
	memset(gid, 0, sizeof(*gid));
	pthread_mutex_lock(&c->lock);
	if (index == atomic_load(&c->gid_index))
		*gid = c->address.gid;
	pthread_mutex_unlock(&c->lock);
	return 0;
}

int soft_query_gid_ex(struct ibv_context *context, uint32_t port,
		      uint32_t index, struct ibv_gid_entry *entry,
		      uint32_t flags, size_t entry_size)
{
	struct soft_context *c = soft_context_of(context);
	struct ibv_gid_entry e;

	if (flags || entry_size < sizeof(e))
		return EINVAL;
	if (port != 1 || index >= GID_TABLE)
		return EINVAL;
	memset(&e, 0, sizeof(e));
	if (soft_query_gid(context, 1, (int)index, &e.gid))
		return errno;
	/* Empty entries have no type: ENODATA, as the kernel says. */
	if (!e.gid.global.interface_id)
		return ENODATA;
	e.gid_index = index;
	e.port_num = port;
	e.gid_type = c->device->kind == SOFT_ETHERNET ? IBV_GID_TYPE_ROCE_V2
						      : IBV_GID_TYPE_IB;
	memcpy(entry, &e, sizeof(e));
	return 0;
}

int soft_query_pkey(struct ibv_context *context, uint8_t port, int index,
		    __be16 *pkey)
{
	if (soft_is_foreign(soft_context_of(context))) {
		errno = EIO;
		return -1;
	}
	if (port != 1 || index) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htons(0xffff);
	return 0;
}

/*
 * Ethernet always routes by GID, from an entry of the table that is filled;
 * InfiniBand by LID, with a GRH or without.
 */
bool soft_is_address(struct soft_context *c, const struct ibv_ah_attr *attr)
{
	if (attr->port_num != 1)
		return false;
	if (attr->is_global &&
	    attr->grh.sgid_index != atomic_load(&c->gid_index))
		return false;
	if (c->device->kind == SOFT_ETHERNET)
		return attr->is_global && attr->grh.hop_limit &&
		       attr->grh.dgid.global.interface_id;
	return attr->dlid > 0 && attr->dlid < 0xc000;
}
