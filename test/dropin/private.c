/* SPDX-License-Identifier: MIT */
/*
 * What libibverbs offers to its providers and to the connection manager's
 * library.  Those are loaded with the programs and bind all of it at once, so
 * it must be there; none of it is called, since no provider has a device.
 */
#include <errno.h>

#include "dropin.h"

/* Providers register when they are loaded, and find no device. */
void verbs_register_driver_34(const void *ops);
void verbs_register_driver_34(const void *ops)
{
	(void)ops;
}

extern int verbs_allow_disassociate_destroy;
int verbs_allow_disassociate_destroy;

int dropin_unsupported(void);
int dropin_unsupported(void)
{
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

void *dropin_none(void);
void *dropin_none(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

void dropin_nothing(void);
void dropin_nothing(void)
{
}

#define UNSUPPORTED(name)                                                      \
	int name(void) __attribute__((alias("dropin_unsupported")))
#define NONE(name) void *name(void) __attribute__((alias("dropin_none")))
#define NOTHING(name) void name(void) __attribute__((alias("dropin_nothing")))

NOTHING(__verbs_log);
NOTHING(verbs_set_ops);
NOTHING(verbs_uninit_context);
NONE(_verbs_init_and_alloc_context);
NONE(verbs_open_device);
UNSUPPORTED(__ioctl_final_num_attrs);
UNSUPPORTED(execute_ioctl);
UNSUPPORTED(verbs_init_cq);
UNSUPPORTED(ibv_read_ibdev_sysfs_file);
UNSUPPORTED(ibv_cmd_advise_mr);
UNSUPPORTED(ibv_cmd_alloc_dm);
UNSUPPORTED(ibv_cmd_alloc_mw);
UNSUPPORTED(ibv_cmd_alloc_pd);
UNSUPPORTED(ibv_cmd_attach_mcast);
UNSUPPORTED(ibv_cmd_close_xrcd);
UNSUPPORTED(ibv_cmd_create_ah);
UNSUPPORTED(ibv_cmd_create_counters);
UNSUPPORTED(ibv_cmd_create_cq);
UNSUPPORTED(ibv_cmd_create_cq_ex);
UNSUPPORTED(ibv_cmd_create_flow);
UNSUPPORTED(ibv_cmd_create_flow_action_esp);
UNSUPPORTED(ibv_cmd_create_qp);
UNSUPPORTED(ibv_cmd_create_qp_ex);
UNSUPPORTED(ibv_cmd_create_qp_ex2);
UNSUPPORTED(ibv_cmd_create_rwq_ind_table);
UNSUPPORTED(ibv_cmd_create_srq);
UNSUPPORTED(ibv_cmd_create_srq_ex);
UNSUPPORTED(ibv_cmd_create_wq);
UNSUPPORTED(ibv_cmd_dealloc_mw);
UNSUPPORTED(ibv_cmd_dealloc_pd);
UNSUPPORTED(ibv_cmd_dereg_mr);
UNSUPPORTED(ibv_cmd_destroy_ah);
UNSUPPORTED(ibv_cmd_destroy_counters);
UNSUPPORTED(ibv_cmd_destroy_cq);
UNSUPPORTED(ibv_cmd_destroy_flow);
UNSUPPORTED(ibv_cmd_destroy_flow_action);
UNSUPPORTED(ibv_cmd_destroy_qp);
UNSUPPORTED(ibv_cmd_destroy_rwq_ind_table);
UNSUPPORTED(ibv_cmd_destroy_srq);
UNSUPPORTED(ibv_cmd_destroy_wq);
UNSUPPORTED(ibv_cmd_detach_mcast);
UNSUPPORTED(ibv_cmd_free_dm);
UNSUPPORTED(ibv_cmd_get_context);
UNSUPPORTED(ibv_cmd_modify_cq);
UNSUPPORTED(ibv_cmd_modify_flow_action_esp);
UNSUPPORTED(ibv_cmd_modify_qp);
UNSUPPORTED(ibv_cmd_modify_qp_ex);
UNSUPPORTED(ibv_cmd_modify_srq);
UNSUPPORTED(ibv_cmd_modify_wq);
UNSUPPORTED(ibv_cmd_open_qp);
UNSUPPORTED(ibv_cmd_open_xrcd);
UNSUPPORTED(ibv_cmd_poll_cq);
UNSUPPORTED(ibv_cmd_post_recv);
UNSUPPORTED(ibv_cmd_post_send);
UNSUPPORTED(ibv_cmd_post_srq_recv);
UNSUPPORTED(ibv_cmd_query_context);
UNSUPPORTED(ibv_cmd_query_device_any);
UNSUPPORTED(ibv_cmd_query_mr);
UNSUPPORTED(ibv_cmd_query_port);
UNSUPPORTED(ibv_cmd_query_qp);
UNSUPPORTED(ibv_cmd_query_srq);
UNSUPPORTED(ibv_cmd_read_counters);
UNSUPPORTED(ibv_cmd_reg_dm_mr);
UNSUPPORTED(ibv_cmd_reg_dmabuf_mr);
UNSUPPORTED(ibv_cmd_reg_mr);
UNSUPPORTED(ibv_cmd_req_notify_cq);
UNSUPPORTED(ibv_cmd_rereg_mr);
UNSUPPORTED(ibv_cmd_resize_cq);

NOTHING(ibv_copy_ah_attr_from_kern);
NOTHING(ibv_copy_path_rec_from_kern);
NOTHING(ibv_copy_path_rec_to_kern);
NOTHING(ibv_copy_qp_attr_from_kern);
