/* SPDX-License-Identifier: MIT */
/* The faults that a context is to inject. */
#ifndef SOFT_FAULT_H
#define SOFT_FAULT_H

#include "base/base.h"

/*
 * What a clause leaves behind.  Counts are of calls on the context; a fault
 * that has no clause has -1 here, and so has one that has happened.
 */
struct soft_faults {
	int64_t fail_post, fail_recv, fail_reg, fail_qp, fail_cq;
	int64_t fail_alloc;
	int64_t status_at, status; /* enum ibv_wc_status */
	int64_t qp_error;
	int64_t port_down_ms, port_down_for_ms, port_up_ms;
	int64_t gid_change_ms;
	int64_t device_gone;
	int64_t delay_us;
	int64_t memlock;
	int64_t chaos;
	int64_t bounce;
	int64_t no_promise;
};

/* All of @text; WREATH_EINVAL with the clause named. */
int soft_faults_parse(const char *text, struct soft_faults *faults);

/* May arrival be seen by polling memory, and memory be mapped? */
static inline bool soft_faults_keep_order(const struct soft_faults *faults)
{
	return faults->chaos < 0 && faults->no_promise < 0;
}

struct soft_context;
struct soft_qp;

/* The clauses of WREATH_SOFT_FAULTS; at open, without locks. */
int soft_faults_open(struct soft_context *c);
/* Count a call down: is it the one that fails?  For any thread. */
bool soft_fault_hits(int64_t *countdown);
/* Must every post of @c take the slow path? */
bool soft_faults_slow(const struct soft_context *c);

/* ---- port.c ---- */

/* Down or up, with the event.  Caller holds the context's lock. */
void soft_port_set(struct soft_context *c, bool is_down);
/* Another GID at another index.  Caller holds the context's lock. */
void soft_gid_change(struct soft_context *c);
/* The device is no more.  Caller holds the context's lock. */
void soft_device_gone(struct soft_context *c);
/* Timed faults: do what is due; how many ms until the next, or -1. */
int soft_faults_tick(struct soft_context *c);

/* ---- chaos.c ---- */

/* May the head of @qp's queue be executed, or shall it wait a turn? */
bool soft_chaos_holds(struct soft_qp *qp, bool wants_recv, bool *is_rnr);
/* A copy whose lines land in any order. */
void soft_chaos_copy(struct soft_qp *qp, void *to, const void *from,
		     size_t bytes);

#endif
