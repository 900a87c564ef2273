/* SPDX-License-Identifier: MIT */
#include <pthread.h>

#include "verbs/load.h"
#include "verbs/verbs.h"

/*
 * libibverbs is looked up at run time, symbol by symbol with its version, so
 * that one binary runs with and without it and never binds to the old verbs
 * of the same names (IBVERBS_1.0).
 */
#define AT(field) offsetof(struct verbs_table, field)

static const struct verbs_symbol symbols[] = {
	{"ibv_get_device_list", "IBVERBS_1.1", AT(get_device_list), false},
	{"ibv_free_device_list", "IBVERBS_1.1", AT(free_device_list), false},
	{"ibv_get_device_name", "IBVERBS_1.1", AT(get_device_name), false},
	{"ibv_open_device", "IBVERBS_1.1", AT(open_device), false},
	{"ibv_close_device", "IBVERBS_1.1", AT(close_device), false},
	{"ibv_query_device", "IBVERBS_1.1", AT(query_device), false},
	{"ibv_query_port", "IBVERBS_1.1", AT(query_port), false},
	{"ibv_query_gid", "IBVERBS_1.1", AT(query_gid), false},
	{"_ibv_query_gid_ex", "IBVERBS_1.11", AT(query_gid_ex), false},
	{"ibv_query_pkey", "IBVERBS_1.1", AT(query_pkey), false},
	{"ibv_alloc_pd", "IBVERBS_1.1", AT(alloc_pd), false},
	{"ibv_dealloc_pd", "IBVERBS_1.1", AT(dealloc_pd), false},
	{"ibv_reg_mr", "IBVERBS_1.1", AT(reg_mr), false},
	/* Old releases lack it; then memory is registered by address. */
	{"ibv_reg_dmabuf_mr", "IBVERBS_1.12", AT(reg_dmabuf_mr), true},
	{"ibv_dereg_mr", "IBVERBS_1.1", AT(dereg_mr), false},
	{"ibv_create_comp_channel", "IBVERBS_1.0", AT(create_comp_channel),
	 false},
	{"ibv_destroy_comp_channel", "IBVERBS_1.0", AT(destroy_comp_channel),
	 false},
	{"ibv_create_cq", "IBVERBS_1.1", AT(create_cq), false},
	{"ibv_destroy_cq", "IBVERBS_1.1", AT(destroy_cq), false},
	{"ibv_get_cq_event", "IBVERBS_1.1", AT(get_cq_event), false},
	{"ibv_ack_cq_events", "IBVERBS_1.1", AT(ack_cq_events), false},
	{"ibv_create_qp", "IBVERBS_1.1", AT(create_qp), false},
	{"ibv_modify_qp", "IBVERBS_1.1", AT(modify_qp), false},
	{"ibv_query_qp", "IBVERBS_1.1", AT(query_qp), false},
	{"ibv_destroy_qp", "IBVERBS_1.1", AT(destroy_qp), false},
	{"ibv_create_ah", "IBVERBS_1.1", AT(create_ah), false},
	{"ibv_destroy_ah", "IBVERBS_1.1", AT(destroy_ah), false},
	{"ibv_get_async_event", "IBVERBS_1.1", AT(get_async_event), false},
	{"ibv_ack_async_event", "IBVERBS_1.1", AT(ack_async_event), false},
};

static struct verbs_table table = {.name = "libibverbs"};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char reason[256]; /* why it cannot be used; "" if it can */

static void load(void)
{
	verbs_load("libibverbs.so.1", symbols, base_countof(symbols), &table,
		   reason);
}

int verbs_ibv(const struct verbs_table **out)
{
	pthread_once(&once, load);
	if (*reason)
		return base_error(WREATH_EUNSUP,
				  "libibverbs cannot be used: %s; install "
				  "rdma-core (package libibverbs1)", reason);
	*out = &table;
	return 0;
}
