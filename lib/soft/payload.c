/* SPDX-License-Identifier: MIT */
/*
 * Private memory where the system lets no process reach into another: its
 * owner's thread moves it, a payload at a time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "soft/peer.h"
#include "soft/qp.h"

/*
 * Does the key give the right, and where is the memory?  Checked again here:
 * the region may have gone while the message was under way.
 */
char *soft_payload_find(struct soft_context *c, const struct soft_message *m)
{
	struct soft_view view;
	uint64_t at;

	if (!soft_view_keys(c->keys, m->key, &view) || !m->need ||
	    (view.access & m->need) != m->need)
		return NULL;
	at = m->a - view.addr;
	if (at > view.length || m->bytes > view.length - at)
		return NULL;
	return view.base + at;
}

/*
 * To or from our own memory through the kernel, since the application may
 * have unmapped what it has registered.
 */
int soft_copy_own(char *at, void *payload, size_t bytes, bool is_write)
{
	struct iovec near = {payload, bytes};
	struct iovec far = {at, bytes};
	ssize_t n;

	n = is_write ? process_vm_writev(getpid(), &near, 1, &far, 1, 0)
		     : process_vm_readv(getpid(), &near, 1, &far, 1, 0);
	if (n < 0 && (errno == EPERM || errno == ENOSYS)) {
		/* Barred even from ourselves: then it must be mapped. */
		memcpy(is_write ? at : payload, is_write ? payload : at, bytes);
		return 0;
	}
	return n == (ssize_t)bytes ? 0 : EFAULT;
}

int soft_payload_serve(struct soft_context *c, int socket,
		       struct soft_message *m, void *payload, size_t bytes)
{
	const bool is_write = m->type == SOFT_PUT;
	char *at;

	if (m->bytes > SOFT_PAYLOAD || bytes != (is_write ? m->bytes : 0))
		return EPROTO;
	pthread_mutex_lock(&c->lock);
	at = soft_payload_find(c, m);
	m->b = at ? (uint64_t)soft_copy_own(at, payload, m->bytes, is_write)
		  : EACCES;
	pthread_mutex_unlock(&c->lock);
	return soft_payload_send(socket, m, payload,
				 is_write || m->b ? 0 : m->bytes);
}

void soft_payload_take(struct soft_context *c, const struct soft_message *m,
		       const void *payload, size_t bytes)
{
	struct soft_qp *qp = atomic_load(&c->qps[m->slot % SOFT_N_QP]);

	if (!qp)
		return;
	soft_lock(qp->lock);
	/* An answer to a request that is no more means nothing. */
	if (qp->is_live && qp->bounce == SOFT_BOUNCE_ASKED &&
	    qp->bounce_token == m->token) {
		qp->bounce = SOFT_BOUNCE_DONE;
		if (m->b || (m->type != SOFT_PUT && bytes != qp->bounce_bytes))
			qp->bounce = SOFT_BOUNCE_FAILED;
		else if (m->type != SOFT_PUT)
			memcpy(qp->bounced, payload, bytes);
	}
	soft_unlock(qp->lock);
}
