/* SPDX-License-Identifier: MIT */
/*
 * The kernels of a GPU.
 *
 * All are looked up, and loaded where the driver does it late, when the first
 * communicator is made: the driver may wait for a context to be idle before it
 * loads one, and a stream of the user may be waiting for our operation.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mem/cuda.h"
#include "reduce/gpu.h"

/* A bound on what is read: the built-in image is some hundred times less. */
#define IMAGE_BYTES_MAX ((size_t)256 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The file and a zero behind it, which ends an image that is a text. */
static int read_image(const char *path, char **out)
{
	struct stat stat;
	char *image;
	size_t bytes, done = 0;
	int cause = EIO;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &stat)) {
		cause = errno;
		goto err_close;
	}
	bytes = (size_t)stat.st_size;
	if (!S_ISREG(stat.st_mode) || !bytes || bytes > IMAGE_BYTES_MAX) {
		close(fd);
		return base_error(WREATH_EINVAL,
				  "WREATH_GPU_IMAGE='%s' is not a file of "
				  "1..%zu bytes", path, IMAGE_BYTES_MAX);
	}
	image = base_alloc(1, bytes + 1);
	if (!image) {
		close(fd);
		return WREATH_ENOMEM;
	}
	while (done < bytes) {
		ssize_t n = read(fd, image + done, bytes - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			cause = errno;
		if (n <= 0)
			goto err_free;
		done += (size_t)n;
	}
	close(fd);
	*out = image;
	return 0;
err_free:
	base_free(image);
err_close:
	if (fd >= 0)
		close(fd);
	return base_error(WREATH_EINVAL,
			  "WREATH_GPU_IMAGE='%s' cannot be read: %s", path,
			  strerror(cause));
}

static void why(struct cuda_gpu *gpu, int result, const char *what)
{
	snprintf(gpu->info.why, sizeof(gpu->info.why), "%.60s: %.60s", what,
		 cuda_name(result));
}

static bool look_up(struct cuda_gpu *gpu, unsigned int type, unsigned int op)
{
	char name[64];
	int result;

	snprintf(name, sizeof(name), "wreath_fold_%s_%s", base_type_name(type),
		 base_op_name(op));
	result = cuda.module_function(&gpu->fold[type][op], gpu->module, name);
	if (!result && cuda.function_load)
		result = cuda.function_load(gpu->fold[type][op]);
	if (result)
		why(gpu, result, name);
	return !result;
}

/* Caller holds @lock and visits the GPU. */
static bool load(struct cuda_gpu *gpu, const void *image)
{
	unsigned int type, op;
	int result = cuda.module_load(&gpu->module, image);

	if (result) {
		why(gpu, result, "the kernels cannot be loaded");
		return false;
	}
	for (type = 0; type < WREATH_N_TYPES; type++) {
		for (op = 0; op < WREATH_AVG; op++) {
			if (look_up(gpu, type, op))
				continue;
			cuda.module_unload(gpu->module);
			gpu->module = NULL;
			return false;
		}
	}
	gpu->info.why[0] = 0;
	gpu->info.has_kernels = true;
	return true;
}

/* Caller holds @lock. */
static int load_once(struct cuda_gpu *gpu, const char *path)
{
	struct cuda_visit visit;
	char *file = NULL;
	const void *image;
	size_t bytes;
	int err = 0;

	if (gpu->has_module)
		return 0;
	image = reduce_gpu_image(&bytes);
	if (path[0])
		err = read_image(path, &file);
	if (file)
		image = file;
	if (!err && !image)
		snprintf(gpu->info.why, sizeof(gpu->info.why),
			 "this library was built without nvcc");
	if (err || !image)
		goto out;
	err = cuda_visit(gpu, &visit);
	if (err)
		goto out;
	if (!load(gpu, image) && file)
		err = base_error(WREATH_EINVAL,
				 "WREATH_GPU_IMAGE='%s' is of no use for GPU "
				 "%d (%s): %s", path, gpu->number,
				 gpu->info.name, gpu->info.why);
	cuda_visit_end(&visit);
out:
	base_free(file);
	gpu->has_module = !err;
	return err;
}

int cuda_kernels_load(struct cuda_gpu *gpu, struct mem_gpu_info *out)
{
	enum { AUTO, GPU, HOST };
	struct base_env *env = base_alloc(1, sizeof(*env));
	int64_t where = AUTO;
	int err = WREATH_ENOMEM;

	if (env)
		err = base_env_load(env);
	if (err)
		goto out;
	where = env->value[BASE_ENV_GPU_REDUCE];
	pthread_mutex_lock(&lock);
	if (where != HOST)
		err = load_once(gpu, env->text[BASE_ENV_GPU_IMAGE]);
	*out = gpu->info;
	pthread_mutex_unlock(&lock);
	if (where == HOST) {
		out->has_kernels = false;
		snprintf(out->why, sizeof(out->why), "WREATH_GPU_REDUCE=host");
	}
	if (!err && where == GPU && !out->has_kernels)
		err = base_error(WREATH_EUNSUP,
				 "WREATH_GPU_REDUCE=gpu, but there are no "
				 "kernels for GPU %d (%s): %s; unset it",
				 gpu->number, out->name, out->why);
out:
	base_free(env);
	return err;
}
