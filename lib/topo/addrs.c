/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "topo/topo.h"

/* Where the raw address is in a socket address of its family (Linux' ABI). */
#define AT_IPV4 4
#define AT_IPV6 8

/* A host with more has a mistake in it; those beyond are left out. */
#define ADDRS_MAX 4096

/* The kind of an interface stands in its uevent file, for any user to read. */
static bool is_vlan(const char *ifname)
{
	char path[64], text[256];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/net/%.16s/uevent", ifname);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n < 0)
		return false;
	text[n] = 0;
	return strstr(text, "DEVTYPE=vlan\n");
}

static unsigned char n_ones(const unsigned char *mask, size_t bytes)
{
	unsigned char n = 0;
	size_t i;

	for (i = 0; i < bytes; i++)
		n = (unsigned char)(n + __builtin_popcount(mask[i]));
	return n;
}

/* The raw bytes of @sa, by the layout of its @family. */
static const unsigned char *raw(const struct sockaddr *sa, int family)
{
	return (const unsigned char *)sa +
	       (family == AF_INET ? AT_IPV4 : AT_IPV6);
}

static void take(const struct ifaddrs *ifa, struct topo_addr *out)
{
	int family = ifa->ifa_addr ? ifa->ifa_addr->sa_family : AF_UNSPEC;

	snprintf(out->ifname, sizeof(out->ifname), "%s", ifa->ifa_name);
	out->ifindex = if_nametoindex(ifa->ifa_name);
	out->is_up = (ifa->ifa_flags & IFF_UP) &&
		     (ifa->ifa_flags & IFF_RUNNING);
	out->is_vlan = is_vlan(ifa->ifa_name);
	if (family == AF_INET) {
		memset(out->addr + 10, 0xff, 2);
		memcpy(out->addr + 12, raw(ifa->ifa_addr, AF_INET), 4);
		out->prefix = 128;
		if (ifa->ifa_netmask)
			out->prefix = (unsigned char)(
				96 + n_ones(raw(ifa->ifa_netmask, AF_INET), 4));
	} else if (family == AF_INET6) {
		memcpy(out->addr, raw(ifa->ifa_addr, AF_INET6), 16);
		out->prefix = 128;
		if (ifa->ifa_netmask)
			out->prefix =
				n_ones(raw(ifa->ifa_netmask, AF_INET6), 16);
	}
}

int topo_addrs(struct topo_addr **out, int *n)
{
	struct topo_addr *addrs;
	struct ifaddrs *list;
	const struct ifaddrs *ifa;
	int count = 0;

	if (getifaddrs(&list))
		return base_error(WREATH_ENET,
				  "the network interfaces cannot be listed: %s",
				  strerror(errno));
	for (ifa = list; ifa && count < ADDRS_MAX; ifa = ifa->ifa_next)
		count++;
	addrs = base_alloc((size_t)count + 1, sizeof(*addrs));
	if (!addrs) {
		freeifaddrs(list);
		return WREATH_ENOMEM;
	}
	/* One without an Internet address comes as that of its hardware. */
	for (ifa = list, *n = 0; *n < count; ifa = ifa->ifa_next)
		take(ifa, &addrs[(*n)++]);
	freeifaddrs(list);
	*out = addrs;
	return 0;
}
