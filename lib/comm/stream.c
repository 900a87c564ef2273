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

/*
 * A ring of calls.  Callers put under @lock; the thread takes without it,
 * since it alone moves @n_done.
 */
struct wreath_stream {
	uint64_t magic;
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

int comm_stream_put(struct wreath_stream *stream, struct comm_op *op)
{
	int err = check(stream, op->name);
	uint64_t n;

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
		int err = comm_run(&stream->ops[n % STREAM_OPS]);

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

int wreath_stream_create(struct wreath_stream **out)
{
	struct wreath_stream *stream;
	sigset_t all, before;
	int err;

	if (!out)
		return base_error(WREATH_EINVAL,
				  "wreath_stream_create: stream is NULL");
	stream = base_alloc(1, sizeof(*stream));
	if (!stream)
		return WREATH_ENOMEM;
	stream->magic = STREAM_MAGIC;
	pthread_mutex_init(&stream->lock, NULL);
	pthread_cond_init(&stream->has_work, NULL);
	pthread_cond_init(&stream->is_idle, NULL);
	/* The thread inherits the mask: signals are for the user's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = pthread_create(&stream->thread, NULL, serve, stream);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		base_free(stream);
		return base_error(WREATH_ENOMEM,
				  "cannot start the stream's thread: %s",
				  strerror(err));
	}
	*out = stream;
	return 0;
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
	stream->magic = 0;
	pthread_cond_destroy(&stream->is_idle);
	pthread_cond_destroy(&stream->has_work);
	pthread_mutex_destroy(&stream->lock);
	base_free(stream);
	return err;
}
