/* SPDX-License-Identifier: MIT */
/* Failures of the CUDA driver, in words. */
#include <stdio.h>

#include "mem/cuda.h"

struct meaning {
	int result, error;
	const char *remedy;
};

static const struct meaning meanings[] = {
	{CUDA_INVALID_VALUE, WREATH_EDEVICE, ""},
	{CUDA_OUT_OF_MEMORY, WREATH_ENOMEM,
	 "; free memory of the GPU, or end others that use it"},
	{CUDA_STUB_LIBRARY, WREATH_EUNSUP,
	 "; the toolkit's stub was found in place of the driver's library: "
	 "take its folder out of LD_LIBRARY_PATH"},
	{CUDA_DEVICE_UNAVAILABLE, WREATH_EUNSUP,
	 "; another process has it in exclusive mode: see nvidia-smi -q -d "
	 "COMPUTE"},
	{CUDA_NO_DEVICE, WREATH_EUNSUP,
	 "; check nvidia-smi and CUDA_VISIBLE_DEVICES"},
	{CUDA_INVALID_DEVICE, WREATH_EINVAL,
	 "; check CUDA_VISIBLE_DEVICES"},
	{CUDA_INVALID_IMAGE, WREATH_EUNSUP, ""},
	{CUDA_NO_BINARY_FOR_GPU, WREATH_EUNSUP,
	 "; the kernels were not compiled for this GPU"},
	{CUDA_PEER_ACCESS_UNSUPPORTED, WREATH_EUNSUP,
	 "; see nvidia-smi topo -p2p r"},
	{CUDA_INVALID_PTX, WREATH_EUNSUP, ""},
	{CUDA_UNSUPPORTED_PTX_VERSION, WREATH_EUNSUP,
	 "; the kernels need a newer driver"},
	{CUDA_NOT_PERMITTED, WREATH_EUNSUP, ""},
	{CUDA_NOT_SUPPORTED, WREATH_EUNSUP, ""},
	{CUDA_SYSTEM_NOT_READY, WREATH_EUNSUP,
	 "; nvidia-fabricmanager must run on this machine"},
	{CUDA_SYSTEM_DRIVER_MISMATCH, WREATH_EUNSUP,
	 "; the kernel's driver and libcuda.so.1 are of different versions"},
	{CUDA_COMPAT_NOT_SUPPORTED, WREATH_EUNSUP, ""},
	{CUDA_STREAM_CAPTURE_UNSUPPORTED, WREATH_EUNSUP,
	 "; call it while no graph is captured"},
	{CUDA_STREAM_CAPTURE_IMPLICIT, WREATH_EUNSUP,
	 "; call it while no graph is captured"},
	{CUDA_CONTEXT_IS_DESTROYED, WREATH_EDEVICE,
	 "; the device was reset while it was in use"},
};

/* For what is not in the table: the device's own failures, which last. */
static const struct meaning other = {
	0, WREATH_EDEVICE,
	"; the GPU's context may be lost: see dmesg for Xid, and start the "
	"process again"};

static const struct meaning *find(int result)
{
	size_t i;

	for (i = 0; i < base_countof(meanings); i++)
		if (meanings[i].result == result)
			return &meanings[i];
	return &other;
}

const char *cuda_name(int result)
{
	const char *name = NULL;

	if (!cuda.error_name || cuda.error_name(result, &name) || !name)
		return "an error that the driver has no name for";
	return name;
}

void cuda_describe(int result, char out[128])
{
	const char *text = NULL;

	if (!cuda.error_string || cuda.error_string(result, &text) || !text)
		text = "no text";
	snprintf(out, 128, "%.60s (%d: %.50s)", cuda_name(result), result,
		 text);
}

int cuda_error(int result, const char *operation, const char *fmt, ...)
{
	const struct meaning *meaning = find(result);
	char object[256], text[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(object, sizeof(object), fmt, ap);
	va_end(ap);
	cuda_describe(result, text);
	return base_error(meaning->error, "%s, %s: %s%s", operation, object,
			  text, meaning->remedy);
}
