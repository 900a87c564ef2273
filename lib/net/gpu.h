/* SPDX-License-Identifier: MIT */
/*
 * Memory of GPUs, as ports and peers reach it: a part of the door, net/net.h.
 *
 * A port reaches it where the user's allocation can be registered: by DMA-BUF,
 * else by nvidia-peermem; else all goes through slots, which are memory of the
 * host.  Which it is is found when a place is granted first, for each port and
 * GPU, and kept.  Ranks of one host whose memory is mapped reach each other's
 * by CUDA IPC.
 */
#ifndef NET_GPU_H
#define NET_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct base_env;
struct net;
struct net_conn;
struct net_gpu_way;
struct verbs_device;

/*
 * Make the slots of @conn known to CUDA, ours and the peer's, once: true where
 * all are, so that kernels read and write them.  On a connection that is ready,
 * in a process that uses a GPU.  May block for milliseconds.  conn->has_pinned
 * is false where it is to be tried again: a CUDA stream waits for this process.
 */
bool net_conn_pin(struct net_conn *conn);
/* Those of all connections. */
void net_pin(struct net *net);

/*
 * At the end of an operation for which places in memory of a GPU were granted
 * by key: what devices wrote there is seen by everyone when this returns, and
 * the memory may be deregistered.  Blocks for microseconds, and @timeout_ms at
 * most; nothing is done where the GPU needs none of it, or nothing was granted.
 * 0, or the error that broke the net.
 */
int net_flush(struct net *net, int64_t timeout_ms);
/* The same in the midst of it, for what has come so far: peers go on writing,
 * so that all stays registered, and is flushed again. */
int net_flush_amid(struct net *net, int64_t timeout_ms);

/*
 * How @device reaches memory of GPU @gpu, in words, for people: "DMA-BUF", or
 * why it does not.  Allocates, registers and frees a little.
 */
void net_gpu_text(struct verbs_device *device, int gpu,
		  const struct base_env *env, char *out, size_t size);

#endif
