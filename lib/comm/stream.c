/* SPDX-License-Identifier: MIT */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "comm/inner.h"

#define STREAM_MAGIC 0x7772656174687374ull
#define STREAM_OPS 1024 /* that may wait; one more is WREATH_EAGAIN */
/* Looks for work before the thread sleeps: about 20 us of pauses. */
#define STREAM_SPINS 512
/* A CUDA stream that is not there after so long is looked at every ms. */
#define STREAM_PATIENT_NS 2000000

/*
 * A ring of calls.  Callers put under @lock; the thread takes without it,
 * since it alone moves @n_done.
 */
struct wreath_stream {
	uint64_t magic;
	struct mem_stream *cuda; /* that it is in order with; or NULL */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t has_work, is_idle;
	_Atomic uint64_t n_put, n_done;
	_Atomic bool sleeps; /* the thread waits for @has_work */
	bool ends;
	int error; /* the first since the last wait; under @lock */
	char error_text[2048];
	struct comm_op ops[STREAM_OPS];
};

static int check(const struct wreath_stream *stream, const char *function)
{
	if (stream && stream->magic == STREAM_MAGIC)
		return 0;
	return base_error(WREATH_EINVAL, "%s: %s", function,
			  stream ? "not a stream, or one destroyed already"
				 : "the stream is NULL");
}

/* What @op reads and writes there must be the CUDA stream's own GPU's. */
static int check_gpu(const struct wreath_stream *stream,
		     const struct comm_op *op)
{
	int gpu = stream->cuda ? mem_stream_gpu(stream->cuda) : -1;
	int its = comm_gpu_of(op);

	if (gpu < 0 || its < 0 || gpu == its)
		return 0;
	return base_error(WREATH_EINVAL,
			  "%s: the stream is of GPU %d, and the buffer is on "
			  "GPU %d", op->name, gpu, its);
}

int comm_stream_put(struct wreath_stream *stream, struct comm_op *op)
{
	int err = check(stream, op->name);
	uint64_t n;

	if (!err)
		err = check_gpu(stream, op);
	if (err)
		return err;
	pthread_mutex_lock(&stream->lock);
	n = atomic_load_explicit(&stream->n_put, memory_order_relaxed);
	if (n - atomic_load_explicit(&stream->n_done, memory_order_acquire) ==
	    STREAM_OPS) {
		pthread_mutex_unlock(&stream->lock);
		return base_error(WREATH_EAGAIN,
				  "%d operations wait in the stream already; "
				  "wait for some of them", STREAM_OPS);
	}
	err = stream->cuda ? mem_stream_put(stream->cuda, &op->cuda_put) : 0;
	if (err) {
		pthread_mutex_unlock(&stream->lock);
		return err;
	}
	/* The ticket is taken under the lock: two callers of one stream must
	 * not queue in another order than that of their tickets. */
	op->ticket = comm_ticket(op->comm);
	stream->ops[n % STREAM_OPS] = *op;
	/* Pairs with the load in next_op(); sequentially consistent, so that
	 * either it sees the call or we see it asleep. */
	atomic_store(&stream->n_put, n + 1);
	if (atomic_load(&stream->sleeps))
		pthread_cond_signal(&stream->has_work);
	pthread_mutex_unlock(&stream->lock);
	return 0;
}

static bool has_op(struct wreath_stream *stream, uint64_t n)
{
	return atomic_load(&stream->n_put) != n;
}

/* Wait for call @n; false when the stream ends. */
static bool next_op(struct wreath_stream *stream, uint64_t n)
{
	unsigned int i;

	for (i = 0; i < STREAM_SPINS; i++) {
		if (has_op(stream, n))
			return true;
		base_pause();
	}
	pthread_mutex_lock(&stream->lock);
	/* Pairs with the load of @sleeps in comm_stream_put(). */
	atomic_store(&stream->sleeps, true);
	while (!has_op(stream, n) && !stream->ends)
		pthread_cond_wait(&stream->has_work, &stream->lock);
	atomic_store(&stream->sleeps, false);
	pthread_mutex_unlock(&stream->lock);
	return has_op(stream, n);
}

/*
 * Wait until the CUDA stream has come to the operation, which may take as long
 * as its user's kernels do: until then no peer is told anything, and only what
 * ends the communicator ends this.
 */
static void await_cuda(struct wreath_stream *stream, const struct comm_op *op)
{
	uint64_t start = 0;
	unsigned int n = 0;
	int is_there;

	for (;;) {
		is_there = mem_stream_reached(stream->cuda, op->cuda_put);
		if (is_there < 0)
			comm_break(op->comm, is_there, op->comm->rank,
				   base_error_text());
		if (is_there)
			return;
		if (++n < STREAM_SPINS) {
			base_pause();
			continue;
		}
		sched_yield();
		if (n % 64)
			continue;
		/* Pairs with the release of whoever breaks it. */
		if (atomic_load_explicit(&op->comm->error,
					 memory_order_acquire) &&
		    !comm_is_joining(op->comm))
			return;
		if (!start)
			start = base_now_ns();
		if (base_now_ns() - start > STREAM_PATIENT_NS)
			base_sleep_ms(1);
	}
}

/* One operation, in order with the CUDA stream where there is one. */
static int run_op(struct wreath_stream *stream, struct comm_op *op)
{
	if (stream->cuda)
		await_cuda(stream, op);
	return comm_run(op);
}

void comm_stream_go_on(const struct comm_op *op)
{
	if (base_likely(!op->stream || !op->stream->cuda))
		return;
	mem_stream_release(op->stream->cuda, op->cuda_put);
	/* What could not be pinned while the stream waited. */
	if (op->comm->net)
		net_pin(op->comm->net);
}

static void finish_op(struct wreath_stream *stream, uint64_t n, int err)
{
	pthread_mutex_lock(&stream->lock);
	if (err && !stream->error) {
		stream->error = err;
		snprintf(stream->error_text, sizeof(stream->error_text), "%s",
			 base_error_text());
	}
	/* Pairs with the loads of whoever waits or queries: the result of the
	 * operation is seen before its end. */
	atomic_store_explicit(&stream->n_done, n + 1, memory_order_release);
	pthread_cond_broadcast(&stream->is_idle);
	pthread_mutex_unlock(&stream->lock);
}

static void *serve(void *arg)
{
	struct wreath_stream *stream = arg;
	uint64_t n = 0;

	while (next_op(stream, n)) {
		struct comm_op *op = &stream->ops[n % STREAM_OPS];
		int err = run_op(stream, op);

		finish_op(stream, n, err);
		n++;
	}
	return NULL;
}

/* Caller holds @stream->lock.  Takes the error, so that it is told once. */
static int take_error(struct wreath_stream *stream)
{
	int err = stream->error;

	if (err)
		base_error_again(err, stream->error_text);
	stream->error = 0;
	return err;
}

static int start(struct wreath_stream *stream)
{
	sigset_t all, before;
	int err;

	stream->magic = STREAM_MAGIC;
	pthread_mutex_init(&stream->lock, NULL);
	pthread_cond_init(&stream->has_work, NULL);
	pthread_cond_init(&stream->is_idle, NULL);
	/* The thread inherits the mask: signals are for the user's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = pthread_create(&stream->thread, NULL, serve, stream);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err ? base_error(WREATH_ENOMEM,
				"cannot start the stream's thread: %s",
				strerror(err)) : 0;
}

static void release(struct wreath_stream *stream)
{
	stream->magic = 0;
	if (stream->cuda)
		mem_stream_close(stream->cuda);
	pthread_cond_destroy(&stream->is_idle);
	pthread_cond_destroy(&stream->has_work);
	pthread_mutex_destroy(&stream->lock);
	base_free(stream);
}

/* Takes @cuda over, also when it fails. */
static int create(struct mem_stream *cuda, struct wreath_stream **out)
{
	struct wreath_stream *stream = base_alloc(1, sizeof(*stream));
	int err;

	if (!stream) {
		if (cuda)
			mem_stream_close(cuda);
		return WREATH_ENOMEM;
	}
	stream->cuda = cuda;
	err = start(stream);
	if (err)
		release(stream);
	else
		*out = stream;
	return err;
}

int wreath_stream_create(struct wreath_stream **out)
{
	if (!out)
		return base_error(WREATH_EINVAL,
				  "wreath_stream_create: stream is NULL");
	return create(NULL, out);
}

int wreath_stream_from_cuda(void *cuda_stream, struct wreath_stream **out)
{
	struct mem_stream *cuda;
	int err;

	if (!out)
		return base_error(WREATH_EINVAL,
				  "wreath_stream_from_cuda: stream is NULL");
	err = mem_stream_open(cuda_stream, &cuda);
	return err ? err : create(cuda, out);
}

static bool is_idle(struct wreath_stream *stream)
{
	/* Pairs with the release in finish_op(). */
	return atomic_load_explicit(&stream->n_done, memory_order_acquire) ==
	       atomic_load_explicit(&stream->n_put, memory_order_relaxed);
}

int wreath_stream_wait(struct wreath_stream *stream)
{
	int err = check(stream, "wreath_stream_wait");

	if (err)
		return err;
	pthread_mutex_lock(&stream->lock);
	while (!is_idle(stream))
		pthread_cond_wait(&stream->is_idle, &stream->lock);
	err = take_error(stream);
	pthread_mutex_unlock(&stream->lock);
	return err;
}

int wreath_stream_query(struct wreath_stream *stream)
{
	int err = check(stream, "wreath_stream_query");

	if (err)
		return err;
	if (!is_idle(stream))
		return WREATH_EAGAIN;
	pthread_mutex_lock(&stream->lock);
	err = take_error(stream);
	pthread_mutex_unlock(&stream->lock);
	return err;
}

int wreath_stream_destroy(struct wreath_stream *stream)
{
	int err;

	if (!stream)
		return 0;
	err = wreath_stream_wait(stream);
	if (stream->magic != STREAM_MAGIC)
		return err;
	pthread_mutex_lock(&stream->lock);
	stream->ends = true;
	pthread_cond_signal(&stream->has_work);
	pthread_mutex_unlock(&stream->lock);
	pthread_join(stream->thread, NULL);
	release(stream);
	return err;
}
