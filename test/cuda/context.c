/* SPDX-License-Identifier: MIT */
/*
 * Contexts: one primary of each device, which lives while it is retained, and
 * others that programs make.  A thread has a stack of them.
 */
#include <stdlib.h>
#include <string.h>

#include "test/cuda/fake.h"

static struct CUctx_st primaries[FAKE_DEVICES_MAX];
static struct CUctx_st *others;

struct CUctx_st *fake_primary(int device)
{
	/* Read without the lock by who has the context: written once. */
	if (!primaries[device].is_primary) {
		primaries[device].device = device;
		primaries[device].is_primary = true;
	}
	return &primaries[device];
}

/* Caller holds the lock. */
static bool exists(const struct CUctx_st *ctx)
{
	const struct CUctx_st *at;

	if (ctx >= primaries && ctx < primaries + FAKE_DEVICES_MAX)
		return true;
	for (at = others; at; at = at->next)
		if (at == ctx)
			return true;
	return false;
}

int fake_ctx_check(struct CUctx_st *ctx)
{
	int err = 0;

	pthread_mutex_lock(&fake_lock);
	if (!ctx || !exists(ctx))
		err = CUDA_ERROR_INVALID_CONTEXT;
	else if (!ctx->retained)
		err = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	else
		err = ctx->error;
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int fake_ctx(struct CUctx_st **out)
{
	struct fake_thread *me = fake_me();

	*out = me->n_stack ? me->stack[me->n_stack - 1] : NULL;
	return fake_ctx_check(*out);
}

void fake_ctx_fail(struct CUctx_st *ctx, int error)
{
	if (!ctx->error)
		ctx->error = error;
	pthread_cond_broadcast(&fake_changed);
}

int fake_n_contexts(void)
{
	const struct CUctx_st *at;
	int n = 0;
	int i;

	for (i = 0; i < FAKE_DEVICES_MAX; i++)
		n += primaries[i].retained;
	for (at = others; at; at = at->next)
		n++;
	return n;
}

static int check_device(const char *name, int device)
{
	int err = fake_enter(name);

	if (!err && (device < 0 || device >= fake_config.n_devices))
		err = CUDA_ERROR_INVALID_DEVICE;
	return err;
}

int cuDevicePrimaryCtxRetain(struct CUctx_st **out, int device)
{
	int err = check_device(__func__, device);

	if (err)
		return err;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&fake_lock);
	*out = fake_primary(device);
	(*out)->retained++;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	int err = check_device(__func__, device);
	struct CUctx_st *ctx;

	if (err)
		return err;
	pthread_mutex_lock(&fake_lock);
	ctx = fake_primary(device);
	if (!ctx->retained)
		err = CUDA_ERROR_INVALID_CONTEXT;
	else if (!--ctx->retained)
		memset(ctx->reaches, 0, sizeof(ctx->reaches));
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int cuDevicePrimaryCtxGetState(int device, unsigned int *flags, int *active)
{
	int err = check_device(__func__, device);

	if (err)
		return err;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&fake_lock);
	*flags = 0;
	*active = fake_primary(device)->retained > 0;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int cuCtxCreate_v2(struct CUctx_st **out, unsigned int flags, int device)
{
	struct fake_thread *me = fake_me();
	int err = check_device(__func__, device);
	struct CUctx_st *ctx;

	(void)flags;
	if (err)
		return err;
	if (!out || me->n_stack == FAKE_STACK_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ctx->device = device;
	ctx->retained = 1;
	pthread_mutex_lock(&fake_lock);
	ctx->next = others;
	others = ctx;
	pthread_mutex_unlock(&fake_lock);
	me->stack[me->n_stack++] = ctx;
	*out = ctx;
	return 0;
}

/* What stays of it are 100 bytes, which its legacy stream points to. */
int cuCtxDestroy_v2(struct CUctx_st *ctx)
{
	struct fake_thread *me = fake_me();
	int err = fake_enter(__func__);
	struct CUctx_st **link;

	if (err)
		return err;
	pthread_mutex_lock(&fake_lock);
	err = CUDA_ERROR_INVALID_CONTEXT;
	for (link = &others; *link; link = &(*link)->next) {
		if (*link != ctx)
			continue;
		fake_ctx_wait(ctx);
		*link = ctx->next;
		ctx->retained = 0;
		err = 0;
		break;
	}
	if (!err && !ctx->legacy)
		free(ctx);
	pthread_mutex_unlock(&fake_lock);
	if (!err && me->n_stack && me->stack[me->n_stack - 1] == ctx)
		me->n_stack--;
	return err;
}

int cuCtxGetCurrent(struct CUctx_st **out)
{
	struct fake_thread *me = fake_me();
	int err = fake_enter(__func__);

	if (err)
		return err;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = me->n_stack ? me->stack[me->n_stack - 1] : NULL;
	return 0;
}

/* Caller does not hold the lock; of a failed context as well. */
static int check_push(struct CUctx_st *ctx)
{
	int err;

	pthread_mutex_lock(&fake_lock);
	err = exists(ctx) ? 0 : CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int cuCtxSetCurrent(struct CUctx_st *ctx)
{
	struct fake_thread *me = fake_me();
	int err = fake_enter(__func__);

	if (!err && ctx)
		err = check_push(ctx);
	if (err)
		return err;
	if (me->n_stack)
		me->n_stack--;
	if (ctx)
		me->stack[me->n_stack++] = ctx;
	return 0;
}

int cuCtxPushCurrent_v2(struct CUctx_st *ctx)
{
	struct fake_thread *me = fake_me();
	int err = fake_enter(__func__);

	if (!err)
		err = check_push(ctx);
	if (err)
		return err;
	if (me->n_stack == FAKE_STACK_MAX) {
		fake_tell("contexts are pushed and never popped");
		return CUDA_ERROR_INVALID_VALUE;
	}
	me->stack[me->n_stack++] = ctx;
	return 0;
}

int cuCtxPopCurrent_v2(struct CUctx_st **out)
{
	struct fake_thread *me = fake_me();
	int err = fake_enter(__func__);

	if (err)
		return err;
	if (!me->n_stack)
		return CUDA_ERROR_INVALID_CONTEXT;
	me->n_stack--;
	if (out)
		*out = me->stack[me->n_stack];
	return 0;
}

int cuCtxGetDevice(int *out)
{
	struct fake_thread *me = fake_me();
	int err = fake_enter(__func__);

	if (err)
		return err;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!me->n_stack)
		return CUDA_ERROR_INVALID_CONTEXT;
	*out = me->stack[me->n_stack - 1]->device;
	return 0;
}

int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	struct CUctx_st *ctx;
	int err = fake_enter(__func__);

	if (!err)
		err = fake_ctx(&ctx);
	if (err)
		return err;
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return 0;
}

static int set_peer(const char *name, struct CUctx_st *peer, bool reaches)
{
	struct CUctx_st *ctx;
	int err = fake_enter(name);

	if (!err)
		err = fake_ctx(&ctx);
	if (!err)
		err = fake_ctx_check(peer);
	if (err)
		return err;
	if (peer->device == ctx->device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (fake_config.nopeer)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	pthread_mutex_lock(&fake_lock);
	if (ctx->reaches[peer->device] == reaches)
		err = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED + !reaches;
	ctx->reaches[peer->device] = reaches;
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int cuCtxEnablePeerAccess(struct CUctx_st *peer, unsigned int flags)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return set_peer(__func__, peer, true);
}

int cuCtxDisablePeerAccess(struct CUctx_st *peer)
{
	return set_peer(__func__, peer, false);
}
