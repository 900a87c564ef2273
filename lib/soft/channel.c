/* SPDX-License-Identifier: MIT */
/*
 * Completion channels and asynchronous events.  Both are pipes, so that an
 * application may poll() them and make them non-blocking.  What goes through
 * a pipe names an object and its generation; who reads it looks whether the
 * object still is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "soft/entry.h"
#include "soft/qp.h"
#include "soft/queue.h"

struct record {
	uint32_t type; /* enum ibv_event_type; completion events: none */
	uint32_t slot, generation;
	uint32_t what;
};

enum {
	ABOUT_PORT,
	ABOUT_QP,
	ABOUT_CQ,
	ABOUT_SRQ,
};

struct ibv_comp_channel *soft_create_comp_channel(struct ibv_context *context)
{
	struct soft_context *c = soft_context_of(context);
	struct soft_channel *channel;
	int fds[2];

	if (soft_is_foreign(c) || c->is_gone) {
		errno = EIO;
		return NULL;
	}
	channel = base_alloc(1, sizeof(*channel));
	if (!channel) {
		errno = ENOMEM;
		return NULL;
	}
	if (pipe2(fds, O_CLOEXEC)) {
		base_free(channel);
		return NULL;
	}
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	channel->ibv.context = context;
	channel->ibv.fd = fds[0];
	channel->write_fd = fds[1];
	return &channel->ibv;
}

int soft_destroy_comp_channel(struct ibv_comp_channel *ibchannel)
{
	struct soft_channel *channel = (struct soft_channel *)ibchannel;
	struct soft_context *c = soft_context_of(ibchannel->context);
	bool is_busy;

	if (soft_is_foreign(c))
		return EIO;
	pthread_mutex_lock(&c->lock);
	is_busy = ibchannel->refcnt != 0;
	pthread_mutex_unlock(&c->lock);
	if (is_busy)
		return EBUSY;
	close(ibchannel->fd);
	close(channel->write_fd);
	base_free(channel);
	return 0;
}

/* One record from a pipe; false with errno set. */
static bool read_record(int fd, struct record *record)
{
	ssize_t n;

	/* Writes of a record are atomic, so reads are whole. */
	do {
		n = read(fd, record, sizeof(*record));
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(*record))
		return true;
	if (n >= 0)
		errno = EIO;
	return false;
}

static void write_record(int fd, const struct record *record)
{
	/* A pipe holds 4096 records that nobody reads; more are of no use. */
	if (write(fd, record, sizeof(*record)) != (ssize_t)sizeof(*record))
		base_log(BASE_LOG_WARN, "soft device: an event is lost: %s",
			 strerror(errno));
}

int soft_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct soft_cq *cq = (struct soft_cq *)(void *)ibcq;
	uint32_t n;

	if (soft_is_foreign(soft_context_of(ibcq->context)))
		return EIO;
	if (!ibcq->channel)
		return EINVAL;
	n = atomic_fetch_add(&cq->n_armings, 1) + 1;
	/* Pairs with the fence of who completes: it sees us, or we poll it. */
	atomic_store(&cq->shared->armed,
		     n << 2 | (solicited_only ? SOFT_ARMED_SOLICITED
					      : SOFT_ARMED_ANY));
	soft_fence();
	return 0;
}

void soft_cq_fire(struct soft_cq *cq, bool is_solicited)
{
	struct record record = {.slot = cq->slot,
				.generation = cq->generation};
	uint32_t armed = atomic_load(&cq->shared->armed);

	if (!(armed & 3) ||
	    (!is_solicited && (armed & 3) == SOFT_ARMED_SOLICITED))
		return;
	/* One event per arming, whoever comes first. */
	if (!atomic_compare_exchange_strong(&cq->shared->armed, &armed,
					    armed & ~3u))
		return;
	if (cq->ibv.channel)
		write_record(((struct soft_channel *)cq->ibv.channel)->write_fd,
			     &record);
}

int soft_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq_out,
		      void **cq_context)
{
	struct soft_context *c = soft_context_of(channel->context);
	struct record record;

	if (soft_is_foreign(c)) {
		errno = EIO;
		return -1;
	}
	while (read_record(channel->fd, &record)) {
		struct soft_cq *cq;

		pthread_mutex_lock(&c->lock);
		cq = c->cqs[record.slot % SOFT_N_CQ];
		if (cq && cq->generation == record.generation) {
			cq->n_events++;
			*cq_out = &cq->ibv;
			*cq_context = cq->ibv.cq_context;
			pthread_mutex_unlock(&c->lock);
			return 0;
		}
		pthread_mutex_unlock(&c->lock);
	}
	return -1;
}

void soft_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += n;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

void soft_async(struct soft_context *c, enum ibv_event_type type,
		struct soft_qp *qp, struct soft_cq *cq)
{
	struct record record = {.type = type, .what = ABOUT_PORT};

	if (qp) {
		record.what = ABOUT_QP;
		record.slot = qp->slot;
		record.generation = qp->ibv.qp_num;
	} else if (cq) {
		record.what = ABOUT_CQ;
		record.slot = cq->slot;
		record.generation = cq->generation;
	}
	write_record(c->async_write_fd, &record);
}

void soft_async_srq(struct soft_context *c, enum ibv_event_type type,
		    struct soft_srq *srq)
{
	const struct record record = {.type = type, .what = ABOUT_SRQ,
				      .slot = srq->slot,
				      .generation = srq->generation};

	write_record(c->async_write_fd, &record);
}

/* False: the object is gone.  Caller holds @c->lock. */
static bool find_subject(struct soft_context *c, const struct record *record,
			 struct ibv_async_event *event)
{
	struct soft_qp *qp;
	struct soft_srq *srq;
	struct soft_cq *cq;

	event->event_type = (enum ibv_event_type)record->type;
	if (record->what == ABOUT_QP) {
		qp = c->qps[record->slot % SOFT_N_QP];
		if (!qp || !qp->is_live || qp->ibv.qp_num != record->generation)
			return false;
		qp->n_events++;
		event->element.qp = &qp->ibv;
		return true;
	}
	if (record->what == ABOUT_CQ) {
		cq = c->cqs[record->slot % SOFT_N_CQ];
		if (!cq || cq->generation != record->generation)
			return false;
		cq->n_async++;
		event->element.cq = &cq->ibv;
		return true;
	}
	if (record->what == ABOUT_SRQ) {
		srq = c->srqs[record->slot % SOFT_N_SRQ];
		if (!srq || srq->generation != record->generation)
			return false;
		srq->n_events++;
		event->element.srq = &srq->ibv;
		return true;
	}
	event->element.port_num = 1;
	return true;
}

int soft_get_async_event(struct ibv_context *context,
			 struct ibv_async_event *event)
{
	struct soft_context *c = soft_context_of(context);
	struct record record;
	bool is_found = false;

	if (soft_is_foreign(c)) {
		errno = EIO;
		return -1;
	}
	while (!is_found) {
		if (!read_record(context->async_fd, &record))
			return -1;
		pthread_mutex_lock(&c->lock);
		is_found = find_subject(c, &record, event);
		pthread_mutex_unlock(&c->lock);
	}
	return 0;
}

void soft_ack_async_event(struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		pthread_mutex_lock(&event->element.cq->mutex);
		event->element.cq->async_events_completed++;
		pthread_cond_broadcast(&event->element.cq->cond);
		pthread_mutex_unlock(&event->element.cq->mutex);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		pthread_mutex_lock(&event->element.srq->mutex);
		event->element.srq->events_completed++;
		pthread_cond_broadcast(&event->element.srq->cond);
		pthread_mutex_unlock(&event->element.srq->mutex);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		pthread_mutex_lock(&event->element.qp->mutex);
		event->element.qp->events_completed++;
		pthread_cond_broadcast(&event->element.qp->cond);
		pthread_mutex_unlock(&event->element.qp->mutex);
		break;
	default:
		break;
	}
}
