/* SPDX-License-Identifier: MIT */
/* Registering a region anew, under the keys that peers have. */
#define _GNU_SOURCE
#include <errno.h>

#include "soft/maps.h"
#include "soft/mr.h"
#include "soft/soft.h"

#define KNOWN                                                                  \
	(IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD |            \
	 IBV_REREG_MR_CHANGE_ACCESS)

/* As it is.  The owner's own table: nobody else can write there. */
static struct soft_new_mr args_of(struct soft_mr *mr)
{
	struct soft_context *c = soft_context_of(mr->ibv.context);
	struct soft_key *key = &c->keys[mr->slot];
	struct soft_new_mr args = {
		.c = c,
		.pd = (struct soft_pd *)mr->ibv.pd,
		.addr = atomic_load(&key->addr),
		.length = atomic_load(&key->length),
		.base = (char *)atomic_load(&key->base),
		.access = (int)atomic_load(&key->access),
		.region = mr->region,
		.offset = mr->offset,
	};

	return args;
}

/* 0 or errno. */
static int check(const struct soft_new_mr *args, int flags)
{
	if (!flags || flags & ~(int)KNOWN || !args->pd ||
	    args->pd->ibv.context != &args->c->verbs.context ||
	    !soft_access_is_valid(args->access) || !args->length ||
	    args->addr + args->length < args->addr)
		return EINVAL;
	if (!args->region &&
	    !soft_maps_check((uintptr_t)args->base, args->length,
			     args->access & IBV_ACCESS_LOCAL_WRITE))
		return EFAULT;
	return 0;
}

static void change(struct soft_mr *mr, struct soft_new_mr *args, int flags)
{
	struct soft_context *c = args->c;
	uint64_t word;

	soft_mr_withdraw(mr);
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		soft_mr_release(mr);
		mr->ibv.addr = args->base;
		mr->ibv.length = args->length;
		mr->offset = args->offset;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		atomic_fetch_add(&args->pd->n_refs, 1);
		atomic_fetch_sub(&((struct soft_pd *)mr->ibv.pd)->n_refs, 1);
		mr->ibv.pd = &args->pd->ibv;
	}
	pthread_mutex_lock(&c->lock);
	word = (uint64_t)++c->key_gen << 32 | mr->ibv.lkey;
	pthread_mutex_unlock(&c->lock);
	soft_mr_publish(args, mr, word);
}

int soft_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd,
		  void *addr, size_t length, int access)
{
	struct soft_mr *mr = (struct soft_mr *)(void *)ibmr;
	struct soft_new_mr args = args_of(mr);
	struct soft_context *c = args.c;
	bool is_allowed;
	int err;

	if (soft_is_foreign(c) || c->is_gone) {
		errno = EIO;
		return IBV_REREG_MR_ERR_CMD;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		args.addr = (uintptr_t)addr;
		args.base = addr;
		args.length = length;
		args.region = NULL;
		args.offset = (uintptr_t)addr;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD)
		args.pd = (struct soft_pd *)pd;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		args.access = access;
	err = check(&args, flags);
	if (err) {
		errno = err;
		return IBV_REREG_MR_ERR_INPUT;
	}
	pthread_mutex_lock(&c->lock);
	c->n_locked -= ibmr->length;
	is_allowed = soft_mr_may_lock(c, args.length);
	c->n_locked += is_allowed ? args.length : ibmr->length;
	pthread_mutex_unlock(&c->lock);
	if (!is_allowed) {
		errno = ENOMEM;
		return IBV_REREG_MR_ERR_CMD;
	}
	change(mr, &args, flags);
	return 0;
}
