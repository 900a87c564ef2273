/* SPDX-License-Identifier: MIT */
/* What is asked of streams, and waits for them. */
#include "test/cuda/fake.h"

/* Takes the lock, which stays taken on success. */
static int enter(const char *name, struct CUstream_st *handle,
		 struct CUstream_st **stream, const void *out)
{
	int err = fake_enter(name);

	if (!err && !out)
		err = CUDA_ERROR_INVALID_VALUE;
	return err ? err : fake_stream_lock(handle, stream);
}

/* A captured stream cannot be waited for, and trying ends the capture. */
static int enter_wait(const char *name, struct CUstream_st *handle,
		      struct CUstream_st **stream)
{
	int err = fake_enter(name);

	if (!err)
		err = fake_capture_check();
	if (!err)
		err = fake_stream_lock(handle, stream);
	if (err || !(*stream)->capture)
		return err;
	(*stream)->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
	pthread_mutex_unlock(&fake_lock);
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

int cuStreamQuery(struct CUstream_st *handle)
{
	struct CUstream_st *stream;
	int err = enter_wait(__func__, handle, &stream);

	if (err)
		return err;
	if (stream->oldest != UINT64_MAX)
		err = CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int cuStreamSynchronize(struct CUstream_st *handle)
{
	struct CUstream_st *stream;
	int err = enter_wait(__func__, handle, &stream);

	if (err)
		return err;
	/* The legacy stream stands for all that block. */
	if (stream->is_legacy) {
		struct fake_item item = {.work = FAKE_WAIT_EVENT};
		uint64_t number;

		err = fake_queue(stream, &item, &number);
		if (err)
			return err;
		pthread_mutex_lock(&fake_lock);
	}
	err = fake_stream_wait(stream, fake_sequence);
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int cuCtxSynchronize(void)
{
	struct CUctx_st *ctx;
	int err = fake_enter(__func__);

	if (!err)
		err = fake_capture_check();
	if (!err)
		err = fake_ctx(&ctx);
	if (err)
		return err;
	pthread_mutex_lock(&fake_lock);
	fake_ctx_wait(ctx);
	err = ctx->error;
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int cuStreamGetCtx(struct CUstream_st *handle, struct CUctx_st **out)
{
	struct CUstream_st *stream;
	int err = enter(__func__, handle, &stream, out);

	if (err)
		return err;
	*out = stream->ctx;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int cuStreamGetFlags(struct CUstream_st *handle, unsigned int *out)
{
	struct CUstream_st *stream;
	int err = enter(__func__, handle, &stream, out);

	if (err)
		return err;
	*out = stream->flags;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int cuStreamGetPriority(struct CUstream_st *handle, int *out)
{
	struct CUstream_st *stream;
	int err = enter(__func__, handle, &stream, out);

	if (err)
		return err;
	*out = stream->priority;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int cuStreamIsCapturing(struct CUstream_st *handle, int *out)
{
	struct CUstream_st *stream;
	int err = enter(__func__, handle, &stream, out);

	if (err)
		return err;
	*out = stream->capture;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}
