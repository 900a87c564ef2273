/* SPDX-License-Identifier: MIT */
/*
 * Buffers of the host that memory of a GPU stands for during a call: filled
 * before it, read after it; on a stream, by work that the stream does when it
 * comes to it.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "test/loop/gpu_inner.h"

/* Bytes around a buffer that nobody may write, and what they are. */
#define MARGIN ((size_t)64)
#define CANARY 0x5a
/* What is longer stays on the host: so are counts that are meant to be bad. */
#define MOST ((size_t)64 << 20)

/* Of the thread: within groups maps are kept until the end. */
static _Thread_local int depth;
static _Thread_local bool group_is_on;
static _Thread_local struct gpu_map *group_maps;

static void copy_in(const struct gpu_map *map)
{
	char *at = map->block->alias + map->at;

	memset(at - MARGIN, CANARY, MARGIN);
	memset(at + map->bytes, CANARY, MARGIN);
	memcpy(at, map->host, map->bytes);
}

static void check_margin(const char *at)
{
	size_t i;

	for (i = 0; i < MARGIN; i++)
		if (at[i] != CANARY)
			gpu_broken("a byte beside a buffer was written");
}

static void copy_out(const struct gpu_map *map)
{
	const char *at = map->block->alias + map->at;

	check_margin(at - MARGIN);
	check_margin(at + map->bytes);
	if (map->out_end > map->out_at)
		memcpy(map->host + map->out_at, at + map->out_at,
		       map->out_end - map->out_at);
}

/*
 * Where the host sees a copy only: the buffer and its margins between that and
 * the GPU, on the map's stream, or at once.
 */
static void carry(const struct gpu_map *map, bool is_back)
{
	size_t from = map->at - MARGIN;
	size_t bytes = map->bytes + 2 * MARGIN;
	cu_ptr there = map->block->ptr + from;
	char *here = map->block->alias + from;
	struct CUstream_st *stream = map->stream ? map->stream->cuda
						 : gpu_copy_stream(
							   map->block->device);

	if (gpu_is_seen())
		return;
	if (is_back)
		OK(CU(cuMemcpyDtoHAsync_v2)(here, there, bytes, stream));
	else
		OK(CU(cuMemcpyHtoDAsync_v2)(there, here, bytes, stream));
	if (!map->stream)
		OK(CU(cuStreamSynchronize)(stream));
}

/* Called by streams. */
static void run_in(void *arg)
{
	struct gpu_map *map = arg;

	copy_in(map);
	free(map);
}

static void run_out(void *arg)
{
	struct gpu_map *map = arg;

	copy_out(map);
	gpu_block_put(map->block);
	free(map);
}

static void move_in(const struct gpu_map *map)
{
	struct gpu_map *copy;

	if (!map->stream) {
		copy_in(map);
		carry(map, false);
		return;
	}
	copy = malloc(sizeof(*copy));
	if (!copy)
		gpu_broken("no memory");
	*copy = *map;
	OK(CU(cuLaunchHostFunc)(map->stream->cuda, run_in, copy));
	carry(map, false);
}

/* Owns the map. */
static void move_out(struct gpu_map *map)
{
	carry(map, true);
	if (map->stream)
		OK(CU(cuLaunchHostFunc)(map->stream->cuda, run_out, map));
	else
		run_out(map);
}

/* In a group a call may take up what one before it makes. */
static struct gpu_map *find(struct gpu_map *at, const struct gpu_call *call,
			    const char *host, size_t bytes)
{
	for (; at; at = at->next)
		if (at->stream == call->stream && host >= at->host &&
		    host + bytes <= at->host + at->bytes)
			return at;
	return NULL;
}

static struct gpu_map *map_new(struct gpu_call *call, char *host, size_t bytes)
{
	/* Odd places often, as of the buffers on the host. */
	size_t shift = gpu_chance() % 3 ? 0 : gpu_chance() % 64;
	struct gpu_map *map = find(group_maps, call, host, bytes);

	if (map)
		return map;
	map = calloc(1, sizeof(*map));
	if (!map)
		gpu_broken("no memory");
	map->block = gpu_block_get(call->device, bytes + shift + 2 * MARGIN);
	map->host = host;
	map->bytes = bytes;
	map->at = MARGIN + shift;
	map->stream = call->stream;
	map->out_at = bytes;
	map->next = call->maps;
	call->maps = map;
	move_in(map);
	return map;
}

static void *place(const struct gpu_map *map, const void *host)
{
	cu_ptr at = map->block->ptr + map->at;

	return (void *)(uintptr_t)(at + (size_t)((const char *)host -
						 map->host));
}

/* What comes back of the map: these bytes as well. */
static void expect(struct gpu_map *map, const char *host, size_t bytes)
{
	size_t at = (size_t)(host - map->host);

	if (map->out_at > at)
		map->out_at = at;
	if (map->out_end < at + bytes)
		map->out_end = at + bytes;
}

void gpu_call_begin(struct gpu_call *call, struct wreath_comm *comm,
		    struct wreath_stream *stream)
{
	call->stream = gpu_stream_of(stream);
	call->device = call->stream ? call->stream->device : gpu_device();
	if (!comm || gpu_device() < 0)
		return;
	if (call->stream)
		gpu_note(call->stream, comm);
	else if (!stream)
		gpu_settle(comm);
	/* Nobody orders what runs on a stream without CUDA. */
	if (stream && !call->stream)
		return;
	call->is_on = depth ? group_is_on : gpu_draw();
	OK(CU(cuCtxGetCurrent)(&call->ctx));
}

/* One buffer of two may be the host's; in a group another call may map it. */
static bool stays(void)
{
	return gpu_is_mixed() && !depth && gpu_chance() % 4 == 0;
}

void gpu_call_buffers(struct gpu_call *call, const void **send,
		      size_t send_bytes, void **recv, size_t recv_bytes)
{
	/* It is the caller's, who may write it. */
	char *a = (char *)(uintptr_t)*send;
	char *b = *recv;
	struct gpu_map *map;

	if (!call->is_on || send_bytes > MOST || recv_bytes > MOST ||
	    (send_bytes && !a) || (recv_bytes && !b))
		return;
	if (!send_bytes)
		*send = NULL;
	if (!recv_bytes)
		*recv = NULL;
	if (send_bytes && recv_bytes && a < b + recv_bytes &&
	    b < a + send_bytes) {
		char *end = a + send_bytes > b + recv_bytes ? a + send_bytes
							    : b + recv_bytes;
		char *start = a < b ? a : b;

		map = map_new(call, start, (size_t)(end - start));
		*send = place(map, a);
		*recv = place(map, b);
		expect(map, b, recv_bytes);
		return;
	}
	if (send_bytes && !stays())
		*send = place(map_new(call, a, send_bytes), a);
	if (!recv_bytes || stays())
		return;
	map = map_new(call, b, recv_bytes);
	*recv = place(map, b);
	expect(map, b, recv_bytes);
}

static void flush(struct gpu_map *maps)
{
	while (maps) {
		struct gpu_map *next = maps->next;

		move_out(maps);
		maps = next;
	}
}

int gpu_call_end(struct gpu_call *call, int err)
{
	struct gpu_map **last = &call->maps;
	struct CUctx_st *ctx;

	if (call->ctx) {
		OK(CU(cuCtxGetCurrent)(&ctx));
		if (ctx != call->ctx)
			gpu_broken("a call changed the current context");
	}
	if (!depth) {
		flush(call->maps);
		/* A test that is told of a failure may free its buffers. */
		if (call->stream && err && err != WREATH_EAGAIN &&
		    err != WREATH_EINVAL)
			OK(CU(cuStreamSynchronize)(call->stream->cuda));
		return err;
	}
	while (*last)
		last = &(*last)->next;
	*last = group_maps;
	group_maps = call->maps;
	return err;
}

int gpu_group_start(void)
{
	int err = wreath_group_start();

	if (err)
		return err;
	if (!depth++)
		group_is_on = gpu_draw();
	return 0;
}

int gpu_group_end(void)
{
	int err = wreath_group_end();

	if (!depth || --depth)
		return err;
	flush(group_maps);
	group_maps = NULL;
	return err;
}
