/* SPDX-License-Identifier: MIT */
/* The simulated driver in a process of ranks, and its streams. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/loop/gpu_inner.h"

static void *driver; /* NULL: all of this is off */
static bool is_mixed;
static const char *other_driver; /* NULL: the simulation beside the tests */
#define DEVICES_MAX 16
static struct CUstream_st *copy_streams[DEVICES_MAX];
static int n_devices;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpu_stream *streams;

static _Thread_local struct {
	bool is_set;
	int device;
	uint64_t id, random;
} me;

_Noreturn void gpu_broken(const char *what)
{
	fprintf(stderr, "RANKS_GPU: %s\n", what);
	_exit(2);
}

void gpu_expect(int err, const char *what, int line)
{
	char text[256];

	if (!err)
		return;
	snprintf(text, sizeof(text), "line %d: CUDA error %d: %s", line, err,
		 what);
	gpu_broken(text);
}

void *gpu_symbol(const char *name)
{
	void *at = dlsym(driver, name);

	if (!at)
		gpu_broken(name);
	return at;
}

static bool is_wanted(void)
{
	const char *text = getenv("RANKS_GPU");

	if (!text || !*text)
		return false;
	is_mixed = !strcmp(text, "mix");
	if (!is_mixed && strcmp(text, "1"))
		gpu_broken("it is 1 or mix");
	return true;
}

void gpu_prepare(void)
{
	const char *seed = getenv("SEED");
	char text[128];

	if (!is_wanted() || getenv("FAKE_CUDA") || getenv("RANKS_CUDA"))
		return;
	/* Fewer GPUs than ranks, so that some ranks share one. */
	snprintf(text, sizeof(text), "devices=3,late=200us,seed=%llu",
		 seed ? strtoull(seed, NULL, 0)
		      : (unsigned long long)getpid());
	setenv("FAKE_CUDA", text, 1);
	printf("FAKE_CUDA=%s\n", text);
}

/* The driver lies where the tests were built; wreath finds it by its name. */
void gpu_load(void)
{
	static const char tail[] = "/../../cuda/libcuda.so.1";
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path,
			     sizeof(path) - sizeof(tail));
	char *slash;
	int i;

	if (!is_wanted())
		return;
	if (n < 0)
		gpu_broken("no /proc");
	path[n] = 0;
	slash = strrchr(path, '/');
	memcpy(slash, tail, sizeof(tail));
	other_driver = getenv("RANKS_CUDA");
	driver = dlopen(other_driver ? other_driver : path,
			RTLD_NOW | RTLD_LOCAL);
	if (!driver)
		gpu_broken(dlerror());
	OK(CU(cuInit)(0));
	OK(CU(cuDeviceGetCount)(&n_devices));
	if (n_devices > DEVICES_MAX)
		n_devices = DEVICES_MAX;
	for (i = 0; i < n_devices; i++) {
		struct CUctx_st *ctx;

		OK(CU(cuDevicePrimaryCtxRetain)(&ctx, i));
		if (gpu_is_seen())
			continue;
		OK(CU(cuCtxSetCurrent)(ctx));
		OK(CU(cuStreamCreate)(&copy_streams[i],
				      CU_STREAM_NON_BLOCKING));
	}
	gpu_blocks_init();
	OK(CU(cuCtxSetCurrent)(NULL));
}

bool gpu_is_seen(void)
{
	return !other_driver;
}

struct CUstream_st *gpu_copy_stream(int device)
{
	return copy_streams[device];
}

const char *gpu_unload(void)
{
	static char text[256];
	struct fake_leaks leaks;
	int i;

	if (!driver)
		return NULL;
	gpu_blocks_free();
	for (i = 0; i < n_devices; i++) {
		if (copy_streams[i])
			OK(CU(cuStreamDestroy_v2)(copy_streams[i]));
		OK(CU(cuDevicePrimaryCtxRelease_v2)(i));
	}
	if (!gpu_is_seen())
		return NULL;
	CU(fakeCudaLeaks)(&leaks);
	/* The library keeps a stream of each GPU that it has seen. */
	if (!leaks.imports && !leaks.registrations && !leaks.events &&
	    leaks.streams <= n_devices)
		return NULL;
	snprintf(text, sizeof(text), "left on GPUs: %d imports, %d "
		 "registrations, %d events, %d streams", leaks.imports,
		 leaks.registrations, leaks.events, leaks.streams);
	return text;
}

void gpu_use(int device)
{
	struct CUctx_st *ctx;

	OK(CU(cuDevicePrimaryCtxRetain)(&ctx, device));
	OK(CU(cuCtxSetCurrent)(ctx));
	OK(CU(cuDevicePrimaryCtxRelease_v2)(device));
}

void gpu_enter(int rank)
{
	static _Atomic uint64_t n_threads;

	if (!driver)
		return;
	me.is_set = true;
	me.device = rank % n_devices;
	me.id = ++n_threads;
	me.random = (uint64_t)rank << 32 ^ 0x9e37;
	gpu_use(me.device);
}

void gpu_leave(void)
{
	if (!driver)
		return;
	OK(CU(cuCtxSetCurrent)(NULL));
	me.is_set = false;
}

/* Threads that a test starts itself are on the host. */
int gpu_device(void)
{
	return driver && me.is_set ? me.device : -1;
}

uint64_t gpu_chance(void)
{
	return ranks_random(&me.random);
}

bool gpu_is_mixed(void)
{
	return is_mixed;
}

bool gpu_draw(void)
{
	return gpu_device() >= 0 && (!is_mixed || gpu_chance() & 1);
}

/* ---- streams ---- */

struct gpu_stream *gpu_stream_of(const struct wreath_stream *stream)
{
	struct gpu_stream *at;

	if (!driver || !stream)
		return NULL;
	pthread_mutex_lock(&lock);
	for (at = streams; at && at->stream != stream; at = at->next)
		;
	pthread_mutex_unlock(&lock);
	return at;
}

int gpu_stream_create(struct wreath_stream **out)
{
	struct gpu_stream *made;
	int err;

	if (!out || !gpu_draw())
		return wreath_stream_create(out);
	made = calloc(1, sizeof(*made));
	if (!made)
		gpu_broken("no memory");
	made->device = me.device;
	made->owner = me.id;
	OK(CU(cuStreamCreate)(&made->cuda, gpu_chance() & 1));
	err = wreath_stream_from_cuda(made->cuda, out);
	if (err) {
		OK(CU(cuStreamDestroy_v2)(made->cuda));
		free(made);
		return err;
	}
	made->stream = *out;
	pthread_mutex_lock(&lock);
	made->next = streams;
	streams = made;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* What was put behind an operation is done with it. */
static void settle(struct gpu_stream *stream)
{
	if (!stream)
		return;
	OK(CU(cuStreamSynchronize)(stream->cuda));
	stream->n_comms = 0;
}

void gpu_note(struct gpu_stream *stream, const struct wreath_comm *comm)
{
	int i;

	for (i = 0; i < stream->n_comms; i++)
		if (stream->comms[i] == comm)
			return;
	if (i == GPU_COMMS)
		gpu_broken("a stream has calls of too many communicators");
	stream->comms[stream->n_comms++] = comm;
}

/* Caller holds the lock. */
static struct gpu_stream *find_noted(const struct wreath_comm *comm)
{
	struct gpu_stream *at;
	int i;

	for (at = streams; at; at = at->next) {
		/* Others' lists are theirs. */
		for (i = 0; at->owner == me.id && i < at->n_comms; i++)
			if (at->comms[i] == comm)
				return at;
	}
	return NULL;
}

void gpu_settle(const struct wreath_comm *comm)
{
	struct gpu_stream *stream;

	do {
		pthread_mutex_lock(&lock);
		stream = find_noted(comm);
		pthread_mutex_unlock(&lock);
		settle(stream);
	} while (stream);
}

int gpu_stream_wait(struct wreath_stream *stream)
{
	int err = wreath_stream_wait(stream);

	settle(gpu_stream_of(stream));
	return err;
}

int gpu_stream_query(struct wreath_stream *stream)
{
	struct gpu_stream *gpu = gpu_stream_of(stream);
	int err = wreath_stream_query(stream);

	if (!gpu || err == WREATH_EAGAIN)
		return err;
	if (!err && CU(cuStreamQuery)(gpu->cuda) == CUDA_ERROR_NOT_READY)
		return WREATH_EAGAIN;
	settle(gpu);
	return err;
}

int gpu_stream_destroy(struct wreath_stream *stream)
{
	struct gpu_stream *gpu = gpu_stream_of(stream);
	struct gpu_stream **link = &streams;
	int err;

	if (gpu) {
		pthread_mutex_lock(&lock);
		while (*link != gpu)
			link = &(*link)->next;
		*link = gpu->next;
		pthread_mutex_unlock(&lock);
	}
	err = wreath_stream_destroy(stream);
	settle(gpu);
	if (gpu)
		OK(CU(cuStreamDestroy_v2)(gpu->cuda));
	free(gpu);
	return err;
}

/* It waited for what the communicator had on streams. */
int gpu_comm_destroy(struct wreath_comm *comm)
{
	int err = wreath_comm_destroy(comm);

	if (gpu_device() >= 0)
		gpu_settle(comm);
	return err;
}
