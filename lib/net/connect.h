/* SPDX-License-Identifier: MIT */
/* A part of the door, net/net.h: how connections are made. */
#ifndef NET_CONNECT_H
#define NET_CONNECT_H

struct net;
struct net_cm_conn;
struct net_mr;
struct net_record;
struct net_verdict;

/*
 * A connection is made in three steps: net_conn_new() fills the record for the
 * peer, net_conn_ready() takes the peer's and readies the queue pair, and when
 * both ends have come so far (a barrier), net_conn_reach() finds the way to the
 * peer's slots.  Then messages may be sent.
 *
 * net_conn_ready() returns WREATH_EAGAIN where the pair of ports does not
 * work, with the text set.  When it did at either end, both exchange verdicts,
 * which net_verdict() fills in, and call net_conn_next(), which frees what
 * there is, and both begin again with the next pair; WREATH_ENET when there is
 * none.
 */
int net_conn_new(struct net *net, int peer, int channel,
		 struct net_record *record);
int net_conn_ready(struct net *net, int peer, int channel,
		   const struct net_record *record);
void net_verdict(const struct net *net, int peer, int error,
		 struct net_verdict *out);
int net_conn_next(struct net *net, int peer, const struct net_verdict *mine,
		  const struct net_verdict *theirs);
int net_conn_reach(struct net *net, int peer, int channel);

/*
 * Between net_conn_ready() and the barrier: connect all that is left to
 * librdmacm by WREATH_CONNECT=cm; nothing to do otherwise.  Blocks up to
 * @timeout_ms, in which the peers must come here too.  @stopped returns 0 or
 * an error for which to stop waiting, and may be NULL.
 */
int net_connect(struct net *net, int timeout_ms, int (*stopped)(void *arg),
		void *arg);

#endif
