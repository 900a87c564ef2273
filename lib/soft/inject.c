/* SPDX-License-Identifier: MIT */
/* Faults put to work: at open, at run time, and when their time has come. */
#define _GNU_SOURCE
#include <string.h>

#include "soft/peer.h"
#include "soft/qp.h"
#include "soft/soft.h"

/* What @more says replaces what @faults says. */
static void merge(struct soft_faults *faults, const struct soft_faults *more)
{
	int64_t *to = (int64_t *)(void *)faults;
	const int64_t *from = (const int64_t *)(const void *)more;
	size_t i;

	for (i = 0; i < sizeof(*faults) / sizeof(*to); i++) {
		if (from[i] >= 0)
			__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
	}
}

static uint64_t due(int64_t ms)
{
	return base_now_ns() + (uint64_t)ms * 1000000u;
}

/* What happens at once or later.  Caller holds the context's lock. */
static void start(struct soft_context *c, const struct soft_faults *faults)
{
	if (faults->fail_alloc >= 0)
		base_alloc_fail_at((uint64_t)faults->fail_alloc);
	if (!faults->port_down_ms)
		soft_port_set(c, true);
	else if (faults->port_down_ms > 0)
		c->down_ns = due(faults->port_down_ms);
	if (faults->port_down_for_ms >= 0)
		c->up_ns = due(faults->port_down_ms + faults->port_down_for_ms);
	if (!faults->port_up_ms)
		soft_port_set(c, false);
	else if (faults->port_up_ms > 0)
		c->up_ns = due(faults->port_up_ms);
	if (!faults->gid_change_ms)
		soft_gid_change(c);
	else if (faults->gid_change_ms > 0)
		c->gid_ns = due(faults->gid_change_ms);
	if (!faults->device_gone)
		soft_device_gone(c);
}

static bool is_slow(const struct soft_faults *f)
{
	return f->fail_post >= 0 || f->fail_recv >= 0 || f->status_at >= 0 ||
	       f->qp_error >= 0 || f->device_gone >= 0 || f->delay_us >= 0 ||
	       f->chaos >= 0 || f->bounce >= 0;
}

/* Caller holds the context's lock. */
static void apply(struct soft_context *c, const struct soft_faults *faults)
{
	uint32_t i;

	merge(&c->faults, faults);
	atomic_store(&c->is_slow, is_slow(&c->faults));
	for (i = 0; i < atomic_load(&c->qps_high); i++) {
		struct soft_qp *qp = atomic_load(&c->qps[i]);

		if (!qp || !qp->is_live)
			continue;
		soft_lock(qp->lock);
		qp->is_fast = false;
		soft_unlock(qp->lock);
	}
	start(c, faults);
}

static void put_to_work(struct soft_context *c,
			const struct soft_faults *faults)
{
	pthread_mutex_lock(&c->lock);
	apply(c, faults);
	pthread_mutex_unlock(&c->lock);
	/* The thread shall know of the times. */
	soft_control_wake(c);
}

int soft_faults_open(struct soft_context *c)
{
	struct soft_faults faults;
	struct base_env env;
	int error;

	error = base_env_load(&env);
	if (error)
		return error;
	error = soft_faults_parse(env.text[BASE_ENV_SOFT_FAULTS], &faults);
	if (error)
		return error;
	put_to_work(c, &faults);
	return 0;
}

int soft_fault(struct ibv_context *context, const char *clause)
{
	struct soft_context *c = soft_context_of(context);
	struct soft_faults faults;
	int error;

	error = soft_faults_parse(clause, &faults);
	if (error)
		return error;
	put_to_work(c, &faults);
	return 0;
}

void soft_qp_fail(struct ibv_qp *ibqp)
{
	struct soft_qp *qp = (struct soft_qp *)(void *)ibqp;

	pthread_mutex_lock(&qp->context->lock);
	soft_qp_fatal(qp);
	pthread_mutex_unlock(&qp->context->lock);
}

/* Is it @at or later?  Then never again; else less until @next. */
static bool is_due(uint64_t *at, uint64_t now, uint64_t *next)
{
	if (!*at)
		return false;
	if (*at <= now) {
		*at = 0;
		return true;
	}
	if (*at < *next)
		*next = *at;
	return false;
}

int soft_faults_tick(struct soft_context *c)
{
	uint64_t next = UINT64_MAX;
	uint64_t now;

	pthread_mutex_lock(&c->lock);
	if (c->down_ns | c->up_ns | c->gid_ns) {
		now = base_now_ns();
		if (is_due(&c->down_ns, now, &next))
			soft_port_set(c, true);
		if (is_due(&c->up_ns, now, &next))
			soft_port_set(c, false);
		if (is_due(&c->gid_ns, now, &next))
			soft_gid_change(c);
		if (next != UINT64_MAX)
			next = (next - now) / 1000000u + 1;
	}
	pthread_mutex_unlock(&c->lock);
	return next == UINT64_MAX ? -1 : (int)next;
}
