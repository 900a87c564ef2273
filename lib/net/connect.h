/* SPDX-License-Identifier: MIT */
/* A part of the door, net/net.h: connections that librdmacm makes. */
#ifndef NET_CONNECT_H
#define NET_CONNECT_H

struct net;
struct net_cm_conn;
struct net_mr;

/*
 * Between net_conn_ready() and the barrier: connect all that is left to
 * librdmacm by WREATH_CONNECT=cm; nothing to do otherwise.  Blocks up to
 * @timeout_ms, in which the peers must come here too.  @stopped returns 0 or
 * an error for which to stop waiting, and may be NULL.
 */
int net_connect(struct net *net, int timeout_ms, int (*stopped)(void *arg),
		void *arg);

#endif
