/* SPDX-License-Identifier: MIT */
/*
 * A CUDA stream that a call names, as wreath knows it: made at the first call
 * that names it, and kept by the communicator.
 */
#include "nccl/inner.h"

/* Handles of CUDA that mean another stream on each device. */
#define STREAM_LEGACY 1
/* And on each thread. */
#define STREAM_PER_THREAD 2

/* There is no CUDA in this process, and will not be. */
static _Atomic bool has_none;

static bool is_of_device(cudaStream_t cuda)
{
	return (uintptr_t)cuda <= STREAM_PER_THREAD;
}

static bool is_on_gpu(const void *buffer)
{
	int device;

	return buffer && !wreath_mem_device(buffer, &device) && device >= 0;
}

/*
 * The default stream of a thread that has no device: there is nothing that a
 * program could wait for then, unless it has memory of a GPU all the same.
 */
static bool is_blocking(const struct nccl_stream *key, const void *send,
			const void *recv)
{
	return is_of_device(key->cuda) && key->device < 0 && !is_on_gpu(send) &&
	       !is_on_gpu(recv);
}

/* Caller holds the communicator's lock. */
static struct nccl_stream *find(struct ncclComm *comm,
				const struct nccl_stream *key)
{
	int i;

	for (i = 0; i < comm->n_streams; i++) {
		struct nccl_stream *at = &comm->streams[i];

		if (at->cuda == key->cuda && at->device == key->device &&
		    at->thread == key->thread)
			return at;
	}
	return NULL;
}

/*
 * Caller holds the lock.  Frees the place of the one that was used least
 * recently, of those that are idle if there are any: others must be waited for.
 */
static struct nccl_stream *evict(struct ncclComm *comm)
{
	struct nccl_stream *oldest = &comm->streams[0];
	struct nccl_stream *idle = NULL;
	int i;

	for (i = 0; i < comm->n_streams; i++) {
		struct nccl_stream *at = &comm->streams[i];

		if (at->last_use < oldest->last_use)
			oldest = at;
		if (wreath_stream_query(at->stream) != WREATH_EAGAIN &&
		    (!idle || at->last_use < idle->last_use))
			idle = at;
	}
	if (idle)
		oldest = idle;
	wreath_stream_destroy(oldest->stream);
	return oldest;
}

/* Caller holds the lock. */
static int add(struct ncclComm *comm, const struct nccl_stream *key,
	       struct nccl_stream **out)
{
	struct nccl_stream *to = &comm->streams[comm->n_streams];
	struct wreath_stream *stream;
	int err = wreath_stream_from_cuda(key->cuda, &stream);

	if (err)
		return err;
	if (comm->n_streams == NCCL_STREAMS)
		to = evict(comm);
	else
		comm->n_streams++;
	*to = *key;
	to->stream = stream;
	*out = to;
	return 0;
}

ncclResult_t nccl_stream_get(struct ncclComm *comm, cudaStream_t cuda,
			     const void *send, const void *recv,
			     const char *function, struct wreath_stream **out)
{
	struct nccl_stream key = {.cuda = cuda};
	struct nccl_stream *at;
	int err = 0;

	*out = NULL;
	if (atomic_load(&has_none))
		return ncclSuccess;
	if (is_of_device(cuda) && wreath_mem_device(NULL, &key.device))
		key.device = -1;
	if ((uintptr_t)cuda == STREAM_PER_THREAD)
		key.thread = pthread_self();
	if (is_blocking(&key, send, recv))
		return ncclSuccess;
	pthread_mutex_lock(&comm->lock);
	at = find(comm, &key);
	if (!at)
		err = add(comm, &key, &at);
	if (!err) {
		at->last_use = ++comm->clock;
		*out = at->stream;
	}
	pthread_mutex_unlock(&comm->lock);
	if (err == WREATH_EUNSUP) {
		/* Whatever the handle is: it is no stream of CUDA's. */
		nccl_log(NCCL_INFO,
			 "operations block, and streams mean nothing: %s",
			 wreath_error_text());
		atomic_store(&has_none, true);
		return ncclSuccess;
	}
	return nccl_result(err, function);
}

ncclResult_t nccl_streams_error(struct ncclComm *comm)
{
	ncclResult_t result = ncclSuccess;
	int i;

	pthread_mutex_lock(&comm->lock);
	for (i = 0; i < comm->n_streams && !result; i++) {
		int err = wreath_stream_query(comm->streams[i].stream);

		if (err && err != WREATH_EAGAIN) {
			result = nccl_result_of(err);
			nccl_keep(wreath_error_text());
		}
	}
	pthread_mutex_unlock(&comm->lock);
	if (result)
		nccl_comm_failed(comm, result, nccl_own_text());
	return result;
}

void nccl_streams_free(struct ncclComm *comm)
{
	int i;

	pthread_mutex_lock(&comm->lock);
	for (i = 0; i < comm->n_streams; i++)
		wreath_stream_destroy(comm->streams[i].stream);
	comm->n_streams = 0;
	pthread_mutex_unlock(&comm->lock);
}
