/* SPDX-License-Identifier: MIT */
/* Ports that have a rate and a latency. */
#ifndef SOFT_PACE_H
#define SOFT_PACE_H

#include "base/base.h"
#include "verbs/verbs.h"

struct soft_context;
struct soft_qp;
struct soft_wqe;

#define SOFT_PACE_MIN 1000ull		/* bits a second */
#define SOFT_PACE_MAX 10000000000000ull
#define SOFT_LATENCY_MAX 10000000000ull /* nanoseconds */

/* ---- pace.c ---- */

static inline bool soft_is_paced(const struct verbs_pace *pace)
{
	return pace->bits || pace->latency_ns;
}

/* The timer, if @c needs one.  0 or an error. */
int soft_pace_open(struct soft_context *c);
void soft_pace_close(struct soft_context *c);

/* Give @wqe, the next of @qp, its time on the link.  Send lock held. */
void soft_pace_post(struct soft_qp *qp, struct soft_wqe *wqe);
/* Has the head of @qp come through?  Send lock held. */
bool soft_pace_is_due(struct soft_qp *qp);
/*
 * What waits in @qp waits for its time (@is_early) or for something else:
 * when to look at it again.  Send lock held.
 */
void soft_pace_next(struct soft_qp *qp, bool is_early);
/* Does anything wait for what no timer tells of? */
bool soft_pace_must_tick(struct soft_context *c);
/* The timer has rung; have it ring when the next request is due. */
void soft_pace_rung(struct soft_context *c);
void soft_pace_wind(struct soft_context *c);

#endif
