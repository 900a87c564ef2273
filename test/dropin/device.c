/* SPDX-License-Identifier: MIT */
/* Devices, their names, and what a port is asked. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dropin.h"

static const struct verbs_table *table;

static void load(void)
{
	if (soft_table(&table)) {
		fprintf(stderr, "libibverbs over the soft device: %s\n",
			base_error_text());
		table = NULL;
	}
}

const struct verbs_table *dropin_soft(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	if (!table)
		errno = ENOSYS;
	return table;
}

struct ibv_device **ibv_get_device_list(int *n)
{
	if (n)
		*n = 0;
	return dropin_soft() ? table->get_device_list(n) : NULL;
}

void ibv_free_device_list(struct ibv_device **list)
{
	table->free_device_list(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return table->get_device_name(device);
}

int ibv_get_device_index(struct ibv_device *device)
{
	return (int)strtol(device->name + strcspn(device->name, "0123456789"),
			   NULL, 10);
}

/* Each opening has an address of its own; the node's GUID is one for all. */
__be64 ibv_get_device_guid(struct ibv_device *device)
{
	return __builtin_bswap64(0x0253574600000000ull +
				 (uint64_t)ibv_get_device_index(device));
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	int err = table->query_device(context, attr);

	if (!err)
		attr->node_guid = ibv_get_device_guid(context->device);
	return err;
}

/* The symbol has an older, shorter struct; the inline function has its own. */
int ibv_query_port(struct ibv_context *context, uint8_t port,
		   struct _compat_ibv_port_attr *compat)
{
	struct ibv_port_attr attr;
	int err = table->query_port(context, port, &attr);

	if (!err)
		memcpy(compat, &attr,
		       offsetof(struct ibv_port_attr, port_cap_flags2));
	return err;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index,
		  union ibv_gid *gid)
{
	return table->query_gid(context, port, index, gid);
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port,
		      uint32_t index, struct ibv_gid_entry *entry,
		      uint32_t flags, size_t entry_size)
{
	return table->query_gid_ex(context, port, index, entry, flags,
				   entry_size);
}

ssize_t _ibv_query_gid_table(struct ibv_context *context,
			     struct ibv_gid_entry *entries, size_t max,
			     uint32_t flags, size_t entry_size)
{
	struct ibv_port_attr attr;
	size_t n = 0;
	int err, i;

	if (flags || entry_size != sizeof(*entries))
		return -EINVAL;
	err = table->query_port(context, 1, &attr);
	if (err)
		return -err;
	for (i = 0; i < attr.gid_tbl_len; i++) {
		struct ibv_gid_entry entry;

		err = table->query_gid_ex(context, 1, (uint32_t)i, &entry, 0,
					  sizeof(entry));
		if (err == ENODATA)
			continue;
		if (err)
			return -err;
		if (n == max)
			return -EINVAL;
		entries[n++] = entry;
	}
	return (ssize_t)n;
}

/* As sysfs has it: 0 is IB or RoCE v1, 1 is RoCE v2. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port,
		       unsigned int index, int *type)
{
	struct ibv_gid_entry entry;
	int err = table->query_gid_ex(context, port, index, &entry, 0,
				      sizeof(entry));

	if (err && err != ENODATA) {
		errno = err;
		return -1;
	}
	*type = !err && entry.gid_type == IBV_GID_TYPE_ROCE_V2;
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index,
		   __be16 *pkey)
{
	return table->query_pkey(context, port, index, pkey);
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	__be16 found;
	int i;

	for (i = 0; !table->query_pkey(context, port, i, &found); i++) {
		if (found == pkey)
			return i;
	}
	return -1;
}

const char *ibv_get_sysfs_path(void)
{
	return "/sys";
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *text,
			size_t size)
{
	char path[4096];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "re");
	if (!f || !size)
		return -1;
	n = fread(text, 1, size - 1, f);
	fclose(f);
	if (n && text[n - 1] == '\n')
		n--;
	text[n] = 0;
	return (int)n;
}
