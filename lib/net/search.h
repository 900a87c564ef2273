/* SPDX-License-Identifier: MIT */
/* The search for ports that may be used: devices.c opens, ports.c looks. */
#ifndef NET_SEARCH_H
#define NET_SEARCH_H

#include "net/inner.h"

/* What there is so far, and why there is no more. */
struct net_search {
	struct net *net;
	const struct net_args *args;
	int numbers[NET_DEVICES_MAX]; /* of each device: a port, or 0: any */
	bool are_soft[NET_DEVICES_MAX];
	int n_listed;	 /* devices that there are */
	bool may_come;	 /* a port may still become active */
	int error;	 /* of the worst refusal, or 0 */
	char why[1024];
	size_t n_said;	 /* of @why, by devices that cannot be opened */
	int open_error;
};

/*
 * Open the devices of WREATH_HCA, or all of those that may be needed; without
 * WREATH_HCA a device that cannot be opened is only noted.
 */
int net_devices_open(struct net_search *search);
/* Look at the ports of the open devices, and keep those that may be used. */
int net_ports_look(struct net_search *search);
/* Note why a device or port is not used. */
void net_search_refuse(struct net_search *search, int error, const char *text);

#endif
