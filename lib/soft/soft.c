/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "soft/device.h"
#include "soft/entry.h"
#include "soft/fault.h"
#include "soft/list.h"
#include "soft/soft.h"

/*
 * Devices live as long as the process, because contexts point at them; a
 * number may be an Ethernet device in one reading of WREATH_SOFT and an
 * InfiniBand one in the next.
 */
static struct soft_device devices[SOFT_N_KINDS][SOFT_N_DEVICES];
static struct soft_device inner; /* "node0" */
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

/* The devices that the environment asks for. */
static int parse_devices(const struct base_env *env, struct soft_item *items,
			 int *n)
{
	return soft_list_parse(env->text[BASE_ENV_SOFT],
			       env->value[BASE_ENV_NODE] >= 0, items, n);
}

static struct ibv_device *device_at(const struct soft_item *item, int index)
{
	struct soft_device *device = item->is_inner
					     ? &inner
					     : &devices[item->kind][index];
	char name[16];

	snprintf(name, sizeof(name), "soft%d", index);
	if (item->is_inner)
		snprintf(name, sizeof(name), "node0");
	pthread_mutex_lock(&devices_lock);
	device->pace = item->pace;
	if (!device->ibv.name[0]) {
		device->kind = item->kind;
		device->ibv.node_type = IBV_NODE_CA;
		device->ibv.transport_type = IBV_TRANSPORT_IB;
		snprintf(device->ibv.name, sizeof(device->ibv.name), "%s",
			 name);
		snprintf(device->ibv.dev_name, sizeof(device->ibv.dev_name),
			 "%s", name);
	}
	pthread_mutex_unlock(&devices_lock);
	return &device->ibv;
}

struct verbs_pace soft_device_pace(const struct soft_device *device)
{
	struct verbs_pace pace;

	pthread_mutex_lock(&devices_lock);
	pace = device->pace;
	pthread_mutex_unlock(&devices_lock);
	return pace;
}

static struct ibv_device **get_device_list(int *n_out)
{
	struct soft_item items[SOFT_N_DEVICES];
	struct ibv_device **list;
	struct base_env env;
	int n, i;

	if (n_out)
		*n_out = 0;
	if (base_env_load(&env) || parse_devices(&env, items, &n)) {
		errno = EINVAL;
		return NULL;
	}
	list = base_alloc((size_t)n + 1, sizeof(*list));
	if (!list) {
		errno = ENOMEM;
		return NULL;
	}
	for (i = 0; i < n; i++)
		list[i] = device_at(&items[i], i);
	if (n_out)
		*n_out = n;
	return list;
}

static void free_device_list(struct ibv_device **list)
{
	base_free(list);
}

static const char *get_device_name(struct ibv_device *device)
{
	return device->name;
}

#define SOFT_VERBS                                                             \
	.name = "soft", .get_device_list = get_device_list,                    \
	.free_device_list = free_device_list,                                  \
	.get_device_name = get_device_name, .open_device = soft_open_device,   \
	.close_device = soft_close_device, .query_device = soft_query_device,  \
	.query_port = soft_query_port, .query_gid = soft_query_gid,            \
	.query_gid_ex = soft_query_gid_ex, .query_pkey = soft_query_pkey,      \
	.alloc_pd = soft_alloc_pd, .dealloc_pd = soft_dealloc_pd,              \
	.reg_mr = soft_reg_mr, .reg_dmabuf_mr = soft_reg_dmabuf_mr,            \
	.dereg_mr = soft_dereg_mr,                                             \
	.create_comp_channel = soft_create_comp_channel,                       \
	.destroy_comp_channel = soft_destroy_comp_channel,                     \
	.create_cq = soft_create_cq, .destroy_cq = soft_destroy_cq,            \
	.get_cq_event = soft_get_cq_event,                                     \
	.ack_cq_events = soft_ack_cq_events,                                   \
	.create_qp = soft_create_qp, .modify_qp = soft_modify_qp,              \
	.query_qp = soft_query_qp, .destroy_qp = soft_destroy_qp,              \
	.create_ah = soft_create_ah, .destroy_ah = soft_destroy_ah,            \
	.get_async_event = soft_get_async_event,                               \
	.ack_async_event = soft_ack_async_event, .map = soft_map,              \
	.unmap = soft_unmap, .pace = soft_pace_query

static const struct verbs_table ordered = {SOFT_VERBS,
					   .promises = VERBS_LINE_ORDER};
static const struct verbs_table unordered = {SOFT_VERBS};

int soft_table(const struct verbs_table **out)
{
	struct soft_item items[SOFT_N_DEVICES];
	struct soft_faults faults;
	struct base_env env;
	int error, n;

	error = base_env_load(&env);
	if (error)
		return error;
	error = parse_devices(&env, items, &n);
	if (error)
		return error;
	error = soft_faults_parse(env.text[BASE_ENV_SOFT_FAULTS], &faults);
	if (error)
		return error;
	*out = soft_faults_keep_order(&faults) ? &ordered : &unordered;
	return 0;
}
