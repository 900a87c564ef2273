/* SPDX-License-Identifier: MIT */
/* Modules, their functions, and launches. */
#include <stdlib.h>
#include <string.h>

#include "test/cuda/kernel.h"

struct CUfunc_st {
	struct CUmod_st *module;
	enum wreath_type type;
	enum wreath_op op;
	int shared_max;
	struct CUfunc_st *next;
};

struct CUmod_st {
	struct CUctx_st *ctx;
	struct CUfunc_st *functions;
	struct CUmod_st *next;
};

static struct CUmod_st *modules; /* guarded by the lock */

/* Without opting in a kernel gets no more than that. */
#define SHARED_BYTES (48 * 1024)
#define SHARED_MAX (163 * 1024)

int fake_n_modules(void)
{
	const struct CUmod_st *at;
	int n = 0;

	for (at = modules; at; at = at->next)
		n++;
	return n;
}

/* Fat binaries, cubins, PTX, or the word for builds that have none. */
static bool is_image(const void *image)
{
	static const unsigned char fatbin[] = {0x50, 0xed, 0x55, 0xba};
	static const unsigned char wrapper[] = {0xb1, 0x43, 0x62, 0x46};

	return !memcmp(image, fatbin, 4) || !memcmp(image, wrapper, 4) ||
	       !memcmp(image, "\177ELF", 4) || !memcmp(image, ".ver", 4) ||
	       !memcmp(image, "//", 2) || !memcmp(image, "fake", 4);
}

int cuModuleLoadData(struct CUmod_st **out, const void *image)
{
	struct CUmod_st *module;
	struct CUctx_st *ctx;
	int err = fake_enter(__func__);

	if (!err)
		err = fake_capture_check();
	if (!err)
		err = fake_ctx(&ctx);
	if (err)
		return err;
	if (!out || !image)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_image(image))
		return CUDA_ERROR_INVALID_IMAGE;
	module = calloc(1, sizeof(*module));
	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	module->ctx = ctx;
	pthread_mutex_lock(&fake_lock);
	module->next = modules;
	modules = module;
	pthread_mutex_unlock(&fake_lock);
	*out = module;
	return 0;
}

int cuModuleUnload(struct CUmod_st *module)
{
	struct CUmod_st **link;
	int err = fake_enter(__func__);

	if (err)
		return err;
	pthread_mutex_lock(&fake_lock);
	for (link = &modules; *link && *link != module; link = &(*link)->next)
		;
	if (!*link) {
		err = CUDA_ERROR_INVALID_HANDLE;
	} else {
		fake_ctx_wait(module->ctx);
		err = module->ctx->error;
		for (link = &modules; *link != module; link = &(*link)->next)
			;
		*link = module->next;
	}
	pthread_mutex_unlock(&fake_lock);
	if (err == CUDA_ERROR_INVALID_HANDLE)
		return err;
	while (module->functions) {
		struct CUfunc_st *next = module->functions->next;

		free(module->functions);
		module->functions = next;
	}
	free(module);
	return err;
}

/* wreath_fold_TYPE_OP; neither name has a line in it. */
static bool read_name(const char *name, struct CUfunc_st *fn)
{
	static const char start[] = "wreath_fold_";
	char want[64];
	int type, op;

	for (type = 0; type < WREATH_N_TYPES; type++) {
		for (op = 0; op < WREATH_AVG; op++) {
			fake_join(want, sizeof(want), start,
				  base_type_name((unsigned int)type),
				  base_op_name((unsigned int)op));
			if (strcmp(want, name))
				continue;
			fn->type = (enum wreath_type)type;
			fn->op = (enum wreath_op)op;
			return true;
		}
	}
	return false;
}

int cuModuleGetFunction(struct CUfunc_st **out, struct CUmod_st *module,
			const char *name)
{
	struct CUfunc_st *fn;
	int err = fake_enter(__func__);

	if (err)
		return err;
	if (!out || !module || !name)
		return CUDA_ERROR_INVALID_VALUE;
	fn = calloc(1, sizeof(*fn));
	if (!fn)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!read_name(name, fn)) {
		free(fn);
		return CUDA_ERROR_NOT_FOUND;
	}
	fn->module = module;
	fn->shared_max = SHARED_BYTES;
	pthread_mutex_lock(&fake_lock);
	fn->next = module->functions;
	module->functions = fn;
	pthread_mutex_unlock(&fake_lock);
	*out = fn;
	return 0;
}

int cuFuncSetAttribute(struct CUfunc_st *fn, int attribute, int value)
{
	int err = fake_enter(__func__);

	if (err)
		return err;
	if (!fn)
		return CUDA_ERROR_INVALID_HANDLE;
	if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
	    value < 0 || value > SHARED_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	fn->shared_max = value;
	return 0;
}

int cuFuncGetAttribute(int *out, int attribute, struct CUfunc_st *fn)
{
	int err = fake_enter(__func__);

	if (err)
		return err;
	if (!fn)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*out = 0;
	if (attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
		*out = 1024;
	else if (attribute == CU_FUNC_ATTRIBUTE_NUM_REGS)
		*out = 40;
	else if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
		*out = fn->shared_max;
	return 0;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, struct CUfunc_st *fn,
						int threads, size_t shared)
{
	int err = fake_enter(__func__);

	(void)shared;
	if (err)
		return err;
	if (!out || !fn || threads <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	*out = 2048 / threads;
	return 0;
}

/* CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE and _END are 1, 2 and 0. */
static const void *batch_of(void **params, void **extra)
{
	const void *buffer = NULL;
	size_t bytes = 0;

	if (params)
		return extra ? NULL : params[0];
	for (; extra && extra[0]; extra += 2) {
		if (extra[0] == (void *)1)
			buffer = extra[1];
		else if (extra[0] == (void *)2)
			bytes = *(size_t *)extra[1];
	}
	return bytes == sizeof(struct reduce_gpu_batch) ? buffer : NULL;
}

int cuLaunchKernel(struct CUfunc_st *fn, unsigned int grid_x,
		   unsigned int grid_y, unsigned int grid_z,
		   unsigned int block_x, unsigned int block_y,
		   unsigned int block_z, unsigned int shared_bytes,
		   struct CUstream_st *handle, void **params, void **extra)
{
	struct fake_item item = {.work = FAKE_KERNEL};
	struct CUstream_st *stream;
	const void *batch = batch_of(params, extra);
	int err = fake_enter(__func__);

	if (err)
		return err;
	if (!fn || !batch || !grid_x || !block_x || grid_y != 1 ||
	    grid_z != 1 || block_y != 1 || block_z != 1 || block_x > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	if (shared_bytes > (unsigned int)fn->shared_max)
		return CUDA_ERROR_INVALID_VALUE;
	item.kernel = malloc(sizeof(*item.kernel));
	if (!item.kernel)
		return CUDA_ERROR_OUT_OF_MEMORY;
	item.kernel->type = fn->type;
	item.kernel->op = fn->op;
	item.kernel->grid = grid_x;
	item.kernel->block = block_x;
	memcpy(&item.kernel->batch, batch, sizeof(item.kernel->batch));
	err = fake_stream_lock(handle, &stream);
	if (!err && stream->ctx != fn->module->ctx) {
		err = CUDA_ERROR_INVALID_HANDLE;
		pthread_mutex_unlock(&fake_lock);
	}
	if (!err)
		return fake_queue(stream, &item, NULL);
	fake_kernel_free(item.kernel);
	return err;
}
