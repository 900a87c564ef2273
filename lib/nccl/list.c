/* SPDX-License-Identifier: MIT */
/*
 * Lists of devices and of interfaces.  NCCL's name beginnings, or all but some;
 * wreath's name what there is, so they are looked up on this host.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/env.h"

const char *nccl_devices_at = "/sys/class/infiniband";

/* "^=NAME,NAME": all but (^) those that are called so (=), or begin so. */
struct list {
	bool is_not, is_exact;
	const char *names;
};

static struct list list_of(const char *text)
{
	struct list list = {.names = text};

	if (*list.names == '^') {
		list.is_not = true;
		list.names++;
	}
	if (*list.names == '=') {
		list.is_exact = true;
		list.names++;
	}
	return list;
}

/* Does the entry of @n characters mean @name?  Its port is not looked at. */
static bool is_meant(const struct list *list, const char *entry, size_t n,
		     const char *name)
{
	const char *colon = memchr(entry, ':', n);

	if (colon)
		n = (size_t)(colon - entry);
	return n && !strncmp(entry, name, n) && (!list->is_exact || !name[n]);
}

/* The first entry that means @name, its length in *@n; or NULL. */
static const char *find(const struct list *list, const char *name, size_t *n)
{
	const char *at = list->names;

	while (*at) {
		*n = strcspn(at, ",");
		if (is_meant(list, at, *n, name))
			return at;
		at += *n + (at[*n] == ',');
	}
	return NULL;
}

/* ",NAME:PORT" at the end of @out; false where it does not fit. */
static bool append(char out[NCCL_VALUE], const char *name, const char *port,
		   size_t n)
{
	size_t at = strlen(out);
	int more = snprintf(out + at, NCCL_VALUE - at, "%s%s%.*s",
			    at ? "," : "", name, (int)n, port);

	if (more >= 0 && (size_t)more < NCCL_VALUE - at)
		return true;
	out[at] = 0;
	return false;
}

/* A device is wanted whole, or by the port that an entry names. */
static bool add_device(struct nccl_mapping *mapping, const struct list *list,
		       const char *name)
{
	size_t n = 0;
	const char *entry = find(list, name, &n);
	const char *colon = entry ? memchr(entry, ':', n) : NULL;
	size_t port = colon ? (size_t)(entry + n - colon) : 0;

	if (list->is_not && colon)
		snprintf(mapping->note, sizeof(mapping->note),
			 "%.32s is left out whole, and not port%.8s alone",
			 name, colon);
	if (list->is_not == !!entry)
		return true;
	return append(mapping->out, name, colon ? colon : "", port);
}

enum nccl_mapped nccl_map_hca(struct nccl_mapping *mapping)
{
	struct list list = list_of(mapping->value);
	const char *soft = nccl_env("WREATH_SOFT");
	struct dirent **names = NULL;
	bool fits = true;
	int i, n;

	/* Ranks of one host go on to use the soft device. */
	if (!soft || strcmp(soft, "off"))
		fits = append(mapping->out, "soft0", "", 0);
	n = scandir(nccl_devices_at, &names, NULL, alphasort);
	for (i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.')
			fits &= add_device(mapping, &list, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	if (!fits)
		snprintf(mapping->note, sizeof(mapping->note),
			 "it names more devices than WREATH_HCA has room for");
	if (*mapping->out && strcmp(mapping->out, "soft0"))
		return NCCL_SET;
	snprintf(mapping->note, sizeof(mapping->note),
		 "no RDMA device of this host is in it");
	return NCCL_CANNOT;
}

/* NCCL's is a place in the port's table, and wreath's is the key. */
enum nccl_mapped nccl_map_pkey(struct nccl_mapping *mapping)
{
	struct dirent **names = NULL;
	long index, key;
	int i, n;

	if (!nccl_parse(mapping->value, 0, 65535, &index)) {
		snprintf(mapping->note, sizeof(mapping->note),
			 "it is no place in a table of partition keys");
		return NCCL_CANNOT;
	}
	n = scandir(nccl_devices_at, &names, NULL, alphasort);
	for (i = 0; i < n; i++) {
		char path[512], text[16] = "";
		FILE *file = NULL;

		snprintf(path, sizeof(path), "%s/%.64s/ports/1/pkeys/%ld",
			 nccl_devices_at, names[i]->d_name, index);
		if (!*mapping->out && names[i]->d_name[0] != '.')
			file = fopen(path, "re");
		if (file && fgets(text, sizeof(text), file)) {
			text[strcspn(text, "\n")] = 0;
			if (nccl_parse(text, 1, 65535, &key))
				snprintf(mapping->out, sizeof(mapping->out),
					 "%ld", key);
		}
		if (file)
			fclose(file);
		free(names[i]);
	}
	free(names);
	if (*mapping->out)
		return NCCL_SET;
	snprintf(mapping->note, sizeof(mapping->note),
		 "no RDMA device has a partition key at place %ld", index);
	/* The first is what wreath takes. */
	return index ? NCCL_CANNOT : NCCL_DEFAULT;
}

static bool is_usable(const struct ifaddrs *at)
{
	return at->ifa_addr && at->ifa_flags & IFF_UP &&
	       (at->ifa_addr->sa_family == AF_INET ||
		at->ifa_addr->sa_family == AF_INET6);
}

/* The first interface that the list means: wreath meets on one. */
enum nccl_mapped nccl_map_ifname(struct nccl_mapping *mapping)
{
	struct list list = list_of(mapping->value);
	struct ifaddrs *all = NULL;
	const struct ifaddrs *at;
	size_t n;

	if (!getifaddrs(&all)) {
		for (at = all; at && !*mapping->out; at = at->ifa_next)
			if (is_usable(at) &&
			    !!find(&list, at->ifa_name, &n) != list.is_not)
				append(mapping->out, at->ifa_name, "", 0);
		freeifaddrs(all);
	}
	if (*mapping->out)
		return NCCL_SET;
	snprintf(mapping->note, sizeof(mapping->note),
		 "no interface of this host that is up and has an address is "
		 "in it");
	return NCCL_CANNOT;
}
