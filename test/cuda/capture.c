/* SPDX-License-Identifier: MIT */
/*
 * Streams that are captured into graphs: what is queued is dropped, since no
 * graph is ever launched, and calls that are unsafe then are refused and spoil
 * the capture, as they do in the driver.
 */
#include <stdlib.h>

#include "test/cuda/fake.h"

struct CUgraph_st {
	int unused;
};

int fake_capture_check(void)
{
	struct CUstream_st *at;
	int err = 0;

	if (fake_me()->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return 0;
	pthread_mutex_lock(&fake_lock);
	for (at = fake_streams(); at; at = at->next) {
		bool is_own = at->capture_thread == fake_me()->id;

		if (!at->capture ||
		    at->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
			continue;
		if (!is_own &&
		    (at->capture_mode != CU_STREAM_CAPTURE_MODE_GLOBAL ||
		     fake_me()->capture_mode != CU_STREAM_CAPTURE_MODE_GLOBAL))
			continue;
		at->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
		err = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
	int old = fake_me()->capture_mode;
	int err = fake_enter(__func__);

	if (err)
		return err;
	if (!mode || *mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	fake_me()->capture_mode = *mode;
	*mode = old;
	return 0;
}

int cuStreamBeginCapture_v2(struct CUstream_st *handle, int mode)
{
	struct CUstream_st *stream;
	int err = fake_enter(__func__);

	if (!err)
		err = fake_stream_lock(handle, &stream);
	if (err)
		return err;
	if (mode < 0 || mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else if (stream->is_legacy) {
		err = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	} else if (stream->capture) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else {
		stream->capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
		stream->capture_mode = mode;
		stream->capture_thread = fake_me()->id;
	}
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int cuStreamEndCapture(struct CUstream_st *handle, struct CUgraph_st **out)
{
	struct CUstream_st *stream;
	int err = fake_enter(__func__);

	if (!err && !out)
		err = CUDA_ERROR_INVALID_VALUE;
	if (!err)
		err = fake_stream_lock(handle, &stream);
	if (err)
		return err;
	*out = NULL;
	if (stream->capture == CU_STREAM_CAPTURE_STATUS_NONE)
		err = CUDA_ERROR_INVALID_VALUE;
	else if (stream->capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
		 stream->capture_thread != fake_me()->id)
		err = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	else if (stream->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
		err = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (err != CUDA_ERROR_STREAM_CAPTURE_UNMATCHED)
		stream->capture = CU_STREAM_CAPTURE_STATUS_NONE;
	pthread_mutex_unlock(&fake_lock);
	if (err)
		return err;
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

int cuGraphDestroy(struct CUgraph_st *graph)
{
	int err = fake_enter(__func__);

	if (err)
		return err;
	free(graph);
	return 0;
}
