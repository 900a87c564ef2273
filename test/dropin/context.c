/* SPDX-License-Identifier: MIT */
/* The extended functions, which programs find through the context. */
#include <errno.h>
#include <string.h>

#include "dropin.h"

static int query_port(struct ibv_context *context, uint8_t port,
		      struct ibv_port_attr *attr, size_t size)
{
	struct ibv_port_attr all;
	int err = dropin_soft()->query_port(context, port, &all);

	if (err)
		return err;
	memset(attr, 0, size);
	memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
	return 0;
}

static int query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	if ((input && input->comp_mask) || size < sizeof(attr->orig_attr))
		return EINVAL;
	memset(attr, 0, size);
	if (size >= offsetof(struct ibv_device_attr_ex, phys_port_cnt_ex) +
			    sizeof(attr->phys_port_cnt_ex))
		attr->phys_port_cnt_ex = 1;
	return ibv_query_device(context, &attr->orig_attr);
}

static struct ibv_srq *create_srq_ex(struct ibv_context *context,
				     struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;

	(void)context;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD)) {
		errno = EINVAL;
		return NULL;
	}
	if (attr->comp_mask & ~known ||
	    (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE &&
	     attr->srq_type != IBV_SRQT_BASIC)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return ibv_create_srq(attr->pd,
			      (struct ibv_srq_init_attr *)(void *)attr);
}

void dropin_context_fill(struct ibv_context *context)
{
	struct verbs_context *verbs = verbs_get_ctx(context);

	verbs->query_port = query_port;
	verbs->query_device_ex = query_device_ex;
	verbs->create_cq_ex = dropin_create_cq_ex;
	verbs->create_qp_ex = dropin_create_qp_ex;
	verbs->create_srq_ex = create_srq_ex;
}
