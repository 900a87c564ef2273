/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "sock.h"

/* A link-local address means nothing without the name of the interface. */
static bool is_usable(const struct ifaddrs *ifa)
{
	struct sockaddr_in6 in6;

	if (!ifa->ifa_addr || !(ifa->ifa_flags & IFF_UP))
		return false;
	if (ifa->ifa_addr->sa_family == AF_INET)
		return true;
	if (ifa->ifa_addr->sa_family != AF_INET6)
		return false;
	memcpy(&in6, ifa->ifa_addr, sizeof(in6));
	return !IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr);
}

/* The first interface with an address that is not loopback, else loopback. */
static const char *choose(const struct ifaddrs *list)
{
	const struct ifaddrs *ifa;
	const char *loopback = "lo";

	for (ifa = list; ifa; ifa = ifa->ifa_next) {
		if (!is_usable(ifa))
			continue;
		if (!(ifa->ifa_flags & IFF_LOOPBACK))
			return ifa->ifa_name;
		loopback = ifa->ifa_name;
	}
	return loopback;
}

static int no_such(const struct ifaddrs *list, const char *ifname)
{
	const struct ifaddrs *ifa;
	char names[256] = "";
	size_t at = 0;

	for (ifa = list; ifa && at < sizeof(names); ifa = ifa->ifa_next)
		if (is_usable(ifa) && !strstr(names, ifa->ifa_name))
			at += (size_t)snprintf(names + at, sizeof(names) - at,
					       "%s%s", at ? ", " : "",
					       ifa->ifa_name);
	return base_error(WREATH_EINVAL,
			  "no network interface '%.64s' that is up and has an "
			  "address; WREATH_SOCKET_IFNAME may be one of: %s",
			  ifname, names[0] ? names : "(there is none)");
}

int boot_sock_interface(const char *ifname, struct boot_addr *out, int max)
{
	static const int families[] = {AF_INET, AF_INET6};
	struct ifaddrs *list;
	const struct ifaddrs *ifa;
	const char *wanted = ifname;
	size_t f;
	int n = 0;

	if (getifaddrs(&list))
		return base_error(WREATH_ENET,
				  "the network interfaces cannot "
				  "be listed: %s",
				  strerror(errno));
	if (!ifname[0])
		wanted = choose(list);
	/* IPv4 first: it is tried first by those who connect. */
	for (f = 0; f < base_countof(families); f++) {
		for (ifa = list; ifa; ifa = ifa->ifa_next) {
			if (n == max || !is_usable(ifa) ||
			    ifa->ifa_addr->sa_family != families[f] ||
			    strcmp(ifa->ifa_name, wanted))
				continue;
			if (boot_addr_from_sock(ifa->ifa_addr, &out[n])) {
				boot_addr_set_port(&out[n], 0);
				n++;
			}
		}
	}
	if (!n)
		n = no_such(list, wanted);
	freeifaddrs(list);
	return n;
}
