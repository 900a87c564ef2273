/* SPDX-License-Identifier: MIT */
/* The calls: how long their buffers are, and which of them a rank needs. */
#include "test/loop/gpu_inner.h"

/* More than any buffer has: the call is left as it is. */
#define TOO_MANY ((size_t)1 << 40)

static size_t bytes_of(size_t count, enum wreath_type type)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, wreath_type_size(type), &bytes))
		return TOO_MANY;
	return bytes;
}

static size_t blocks_of(size_t count, enum wreath_type type,
			const struct wreath_comm *comm)
{
	size_t bytes = bytes_of(count, type);

	return bytes < TOO_MANY ? bytes * (size_t)wreath_comm_size(comm)
				: TOO_MANY;
}

/* Of blocks of different lengths: up to the end of the last. */
static size_t extent(const size_t *counts, const size_t *displs,
		     enum wreath_type type, const struct wreath_comm *comm)
{
	size_t end = 0;
	size_t at = 0;
	int i;

	if (!counts)
		return TOO_MANY;
	for (i = 0; i < wreath_comm_size(comm); i++) {
		if (displs)
			at = displs[i];
		if (counts[i] > TOO_MANY || at > TOO_MANY)
			return TOO_MANY;
		at += counts[i];
		if (counts[i] && end < at)
			end = at;
	}
	return bytes_of(end, type);
}

static bool is_root(const struct wreath_comm *comm, int root)
{
	return wreath_comm_rank(comm) == root;
}

int gpu_all_reduce(const void *send, void *recv, size_t count,
		   enum wreath_type type, enum wreath_op op,
		   struct wreath_comm *comm, struct wreath_stream *stream)
{
	struct gpu_call call = {0};
	size_t bytes = bytes_of(count, type);

	gpu_call_begin(&call, comm, stream);
	gpu_call_buffers(&call, &send, bytes, &recv, bytes);
	return gpu_call_end(&call, wreath_all_reduce(send, recv, count, type,
						     op, comm, stream));
}

int gpu_reduce(const void *send, void *recv, size_t count,
	       enum wreath_type type, enum wreath_op op, int root,
	       struct wreath_comm *comm, struct wreath_stream *stream)
{
	struct gpu_call call = {0};
	size_t bytes = bytes_of(count, type);

	gpu_call_begin(&call, comm, stream);
	gpu_call_buffers(&call, &send, bytes, &recv,
			 comm && is_root(comm, root) ? bytes : 0);
	return gpu_call_end(&call, wreath_reduce(send, recv, count, type, op,
						 root, comm, stream));
}

int gpu_broadcast(const void *send, void *recv, size_t count,
		  enum wreath_type type, int root, struct wreath_comm *comm,
		  struct wreath_stream *stream)
{
	struct gpu_call call = {0};
	size_t bytes = bytes_of(count, type);

	gpu_call_begin(&call, comm, stream);
	gpu_call_buffers(&call, &send, comm && is_root(comm, root) ? bytes : 0,
			 &recv, bytes);
	return gpu_call_end(&call, wreath_broadcast(send, recv, count, type,
						    root, comm, stream));
}

int gpu_reduce_scatter(const void *send, void *recv, size_t count,
		       enum wreath_type type, enum wreath_op op,
		       struct wreath_comm *comm, struct wreath_stream *stream)
{
	struct gpu_call call = {0};

	gpu_call_begin(&call, comm, stream);
	if (call.is_on)
		gpu_call_buffers(&call, &send, blocks_of(count, type, comm),
				 &recv, bytes_of(count, type));
	return gpu_call_end(&call,
			    wreath_reduce_scatter(send, recv, count, type, op,
						  comm, stream));
}

int gpu_all_gather(const void *send, void *recv, size_t count,
		   enum wreath_type type, struct wreath_comm *comm,
		   struct wreath_stream *stream)
{
	struct gpu_call call = {0};

	gpu_call_begin(&call, comm, stream);
	if (call.is_on)
		gpu_call_buffers(&call, &send, bytes_of(count, type), &recv,
				 blocks_of(count, type, comm));
	return gpu_call_end(&call, wreath_all_gather(send, recv, count, type,
						     comm, stream));
}

int gpu_gather(const void *send, void *recv, size_t count,
	       enum wreath_type type, int root, struct wreath_comm *comm,
	       struct wreath_stream *stream)
{
	struct gpu_call call = {0};

	gpu_call_begin(&call, comm, stream);
	if (call.is_on)
		gpu_call_buffers(&call, &send, bytes_of(count, type), &recv,
				 is_root(comm, root)
					 ? blocks_of(count, type, comm)
					 : 0);
	return gpu_call_end(&call, wreath_gather(send, recv, count, type, root,
						 comm, stream));
}

int gpu_scatter(const void *send, void *recv, size_t count,
		enum wreath_type type, int root, struct wreath_comm *comm,
		struct wreath_stream *stream)
{
	struct gpu_call call = {0};

	gpu_call_begin(&call, comm, stream);
	if (call.is_on)
		gpu_call_buffers(&call, &send,
				 is_root(comm, root)
					 ? blocks_of(count, type, comm)
					 : 0,
				 &recv, bytes_of(count, type));
	return gpu_call_end(&call, wreath_scatter(send, recv, count, type, root,
						  comm, stream));
}

int gpu_all_to_all(const void *send, void *recv, size_t count,
		   enum wreath_type type, struct wreath_comm *comm,
		   struct wreath_stream *stream)
{
	struct gpu_call call = {0};

	gpu_call_begin(&call, comm, stream);
	if (call.is_on)
		gpu_call_buffers(&call, &send, blocks_of(count, type, comm),
				 &recv, blocks_of(count, type, comm));
	return gpu_call_end(&call, wreath_all_to_all(send, recv, count, type,
						     comm, stream));
}

int gpu_all_gather_v(const void *send, void *recv, const size_t *counts,
		     const size_t *displs, enum wreath_type type,
		     struct wreath_comm *comm, struct wreath_stream *stream)
{
	struct gpu_call call = {0};

	gpu_call_begin(&call, comm, stream);
	if (call.is_on && counts)
		gpu_call_buffers(&call, &send,
				 bytes_of(counts[wreath_comm_rank(comm)], type),
				 &recv, extent(counts, displs, type, comm));
	return gpu_call_end(&call,
			    wreath_all_gather_v(send, recv, counts, displs,
						type, comm, stream));
}

int gpu_reduce_scatter_v(const void *send, void *recv, const size_t *counts,
			 const size_t *displs, enum wreath_type type,
			 enum wreath_op op, struct wreath_comm *comm,
			 struct wreath_stream *stream)
{
	struct gpu_call call = {0};

	gpu_call_begin(&call, comm, stream);
	if (call.is_on && counts)
		gpu_call_buffers(&call, &send,
				 extent(counts, displs, type, comm), &recv,
				 bytes_of(counts[wreath_comm_rank(comm)],
					  type));
	return gpu_call_end(&call,
			    wreath_reduce_scatter_v(send, recv, counts, displs,
						    type, op, comm, stream));
}

int gpu_all_to_all_v(const void *send, const size_t *send_counts,
		     const size_t *send_displs, void *recv,
		     const size_t *recv_counts, const size_t *recv_displs,
		     enum wreath_type type, struct wreath_comm *comm,
		     struct wreath_stream *stream)
{
	struct gpu_call call = {0};

	gpu_call_begin(&call, comm, stream);
	if (call.is_on)
		gpu_call_buffers(&call, &send,
				 extent(send_counts, send_displs, type, comm),
				 &recv,
				 extent(recv_counts, recv_displs, type, comm));
	return gpu_call_end(&call, wreath_all_to_all_v(send, send_counts,
						       send_displs, recv,
						       recv_counts, recv_displs,
						       type, comm, stream));
}

int gpu_send(const void *send, size_t count, enum wreath_type type, int peer,
	     struct wreath_comm *comm, struct wreath_stream *stream)
{
	struct gpu_call call = {0};
	void *none = NULL;

	gpu_call_begin(&call, comm, stream);
	gpu_call_buffers(&call, &send, bytes_of(count, type), &none, 0);
	return gpu_call_end(&call, wreath_send(send, count, type, peer, comm,
					       stream));
}

int gpu_recv(void *recv, size_t count, enum wreath_type type, int peer,
	     struct wreath_comm *comm, struct wreath_stream *stream)
{
	struct gpu_call call = {0};
	const void *none = NULL;

	gpu_call_begin(&call, comm, stream);
	gpu_call_buffers(&call, &none, 0, &recv, bytes_of(count, type));
	return gpu_call_end(&call, wreath_recv(recv, count, type, peer, comm,
					       stream));
}
