/* SPDX-License-Identifier: MIT */
/* What becomes of a completion. */
#ifndef SOFT_POLL_H
#define SOFT_POLL_H

#include <string.h>

#include "soft/qp.h"

static inline void soft_wc_fill(const struct soft_source *s, uint64_t wr_id,
				const struct soft_cqe *e, struct ibv_wc *wc)
{
	uint32_t info = atomic_load_explicit(&e->info, memory_order_relaxed);

	if ((info & 0xff) != IBV_WC_SUCCESS) {
		/* What an error leaves undefined must not look plausible. */
		memset(wc, 0xa5, sizeof(*wc));
		wc->wr_id = wr_id;
		wc->status = (enum ibv_wc_status)(info & 0xff);
		wc->vendor_err = info >> 24;
		wc->qp_num = s->qp->ibv.qp_num;
		return;
	}
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = wr_id;
	wc->opcode = (enum ibv_wc_opcode)(info >> 8 & 0xff);
	wc->byte_len = atomic_load_explicit(&e->byte_len,
					    memory_order_relaxed);
	wc->qp_num = s->qp->ibv.qp_num;
	if (!s->is_recv)
		return;
	wc->src_qp = s->qp->attr.dest_qp_num;
	wc->slid = s->qp->attr.ah_attr.dlid;
	if (info >> 16 & SOFT_INFO_IMM) {
		wc->wc_flags = IBV_WC_WITH_IMM;
		wc->imm_data = atomic_load_explicit(&e->imm,
						    memory_order_relaxed);
	}
}

/*
 * Collect up to @max completions of a source that has more to them.  Caller
 * holds the CQ's lock.  more.c
 */
int soft_drain_more(struct soft_source *s, int max, struct ibv_wc *wc);

#endif
