/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "soft/device.h"
#include "soft/entry.h"
#include "soft/fault.h"
#include "soft/soft.h"

#define SOFT_N_DEVICES 16

static const char *const kind_words[SOFT_N_KINDS] = {"roce", "ib"};

/*
 * Devices live as long as the process, because contexts point at them; a
 * number may be an Ethernet device in one reading of WREATH_SOFT and an
 * InfiniBand one in the next.
 */
static struct soft_device devices[SOFT_N_KINDS][SOFT_N_DEVICES];
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

/* One word of the list, "ib:2"; appends to @kinds.  0 or WREATH_EINVAL. */
static int parse_word(const char *word, enum soft_kind *kinds, int *n)
{
	size_t i;

	for (i = 0; i < SOFT_N_KINDS; i++) {
		size_t length = strlen(kind_words[i]);
		int64_t more = 1;

		if (strncmp(word, kind_words[i], length))
			continue;
		if (word[length] &&
		    (word[length] != ':' ||
		     !base_parse_int(word + length + 1, 1, SOFT_N_DEVICES,
				     &more)))
			continue;
		if (*n + more > SOFT_N_DEVICES)
			return base_error(WREATH_EINVAL,
					  "WREATH_SOFT: more than %d devices",
					  SOFT_N_DEVICES);
		while (more--)
			kinds[(*n)++] = (enum soft_kind)i;
		return 0;
	}
	return base_error(WREATH_EINVAL,
			  "WREATH_SOFT: '%.64s' is not ib:N or roce:N with N "
			  "from 1 to %d; write for example roce:2,ib:1, or "
			  "off", word, SOFT_N_DEVICES);
}

/* The devices that @text asks for. */
static int parse_devices(const char *text, enum soft_kind *kinds, int *n)
{
	char copy[sizeof(((struct base_env *)NULL)->text[0])];
	char *word, *rest = NULL;
	int error;

	*n = 0;
	if (!strcmp(text, "off"))
		return base_error(WREATH_EUNSUP, "the soft device is off "
						 "(WREATH_SOFT=off)");
	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, ",", &rest); word;
	     word = strtok_r(NULL, ",", &rest)) {
		error = parse_word(word, kinds, n);
		if (error)
			return error;
	}
	return *n ? 0 : parse_word("", kinds, n);
}

static struct ibv_device *device_at(enum soft_kind kind, int index)
{
	struct soft_device *device = &devices[kind][index];

	pthread_mutex_lock(&devices_lock);
	if (!device->ibv.name[0]) {
		device->kind = kind;
		device->index = index;
		device->ibv.node_type = IBV_NODE_CA;
		device->ibv.transport_type = IBV_TRANSPORT_IB;
		snprintf(device->ibv.name, sizeof(device->ibv.name), "soft%d",
			 index);
		snprintf(device->ibv.dev_name, sizeof(device->ibv.dev_name),
			 "soft%d", index);
	}
	pthread_mutex_unlock(&devices_lock);
	return &device->ibv;
}

static struct ibv_device **get_device_list(int *n_out)
{
	enum soft_kind kinds[SOFT_N_DEVICES];
	struct ibv_device **list;
	struct base_env env;
	int n, i;

	if (n_out)
		*n_out = 0;
	if (base_env_load(&env) ||
	    parse_devices(env.text[BASE_ENV_SOFT], kinds, &n)) {
		errno = EINVAL;
		return NULL;
	}
	list = base_alloc((size_t)n + 1, sizeof(*list));
	if (!list) {
		errno = ENOMEM;
		return NULL;
	}
	for (i = 0; i < n; i++)
		list[i] = device_at(kinds[i], i);
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
	.ack_async_event = soft_ack_async_event, .map = soft_map,         \
	.unmap = soft_unmap

static const struct verbs_table ordered = {SOFT_VERBS,
					   .promises = VERBS_LINE_ORDER};
static const struct verbs_table unordered = {SOFT_VERBS};

int soft_table(const struct verbs_table **out)
{
	enum soft_kind kinds[SOFT_N_DEVICES];
	struct soft_faults faults;
	struct base_env env;
	int error, n;

	error = base_env_load(&env);
	if (error)
		return error;
	error = parse_devices(env.text[BASE_ENV_SOFT], kinds, &n);
	if (error)
		return error;
	error = soft_faults_parse(env.text[BASE_ENV_SOFT_FAULTS], &faults);
	if (error)
		return error;
	*out = soft_faults_keep_order(&faults) ? &ordered : &unordered;
	return 0;
}
