/* SPDX-License-Identifier: MIT */
/*
 * What all calls have in common: they are counted, one of them may have to
 * fail, and there are moments at which none may be made.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/cuda/fake.h"

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_changed = PTHREAD_COND_INITIALIZER;
bool fake_has_ended;
uint64_t fake_sequence;

#define N_COUNTERS 256

/* Guarded by a lock of its own: calls are counted before all else. */
static pthread_mutex_t call_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	const char *name;
	uint64_t n;
} counters[N_COUNTERS];
static uint64_t n_calls;
static char fail_name[64];
static uint64_t fail_at, n_candidates;
static bool is_configured, is_initialized, is_child;

static pthread_key_t thread_key;

static void __attribute__((constructor)) begin(void)
{
	if (pthread_key_create(&thread_key, free))
		abort();
}

struct fake_thread *fake_me(void)
{
	static uint64_t n_threads;
	struct fake_thread *me = pthread_getspecific(thread_key);

	if (me)
		return me;
	me = calloc(1, sizeof(*me));
	if (!me || pthread_setspecific(thread_key, me))
		abort();
	me->capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	me->id = __atomic_add_fetch(&n_threads, 1, __ATOMIC_RELAXED);
	return me;
}

uint64_t fake_random(uint64_t *state)
{
	uint64_t x;

	*state += UINT64_C(0x9e3779b97f4a7c15);
	x = *state;
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

void fake_tell(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "fake cuda: [%d] %s\n", (int)getpid(), text);
}

/* Caller holds @call_lock. */
static void set_fail(const char *name, uint64_t n)
{
	snprintf(fail_name, sizeof(fail_name), "%s", name ? name : "");
	fail_at = name ? n : 0;
	n_candidates = 0;
}

/* For config.c, which is read under the lock. */
void fake_fail_at(const char *name, uint64_t n)
{
	set_fail(name, n);
}

int fakeCudaFail(const char *name, uint64_t n)
{
	int is_left;

	pthread_mutex_lock(&call_lock);
	is_left = fail_at && n_candidates < fail_at;
	set_fail(name, n);
	pthread_mutex_unlock(&call_lock);
	return is_left;
}

/* What gives something back cannot be expected to be tried once more. */
static bool is_release(const char *name)
{
	return strstr(name, "Free") || strstr(name, "Destroy") ||
	       strstr(name, "Unload") || strstr(name, "Unregister") ||
	       strstr(name, "Close") || strstr(name, "Release") ||
	       strstr(name, "Current") || strstr(name, "GetError");
}

static int failure_of(const char *name)
{
	if (strstr(name, "Alloc") || strstr(name, "HostRegister") ||
	    strstr(name, "Create") || strstr(name, "Retain"))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (strstr(name, "Ipc"))
		return CUDA_ERROR_MAP_FAILED;
	if (strstr(name, "ModuleLoad"))
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	if (strstr(name, "GetFunction") || strstr(name, "GetProc"))
		return CUDA_ERROR_NOT_FOUND;
	if (strstr(name, "HandleForAddress"))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (strstr(name, "Launch"))
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	if (!strcmp(name, "cuInit"))
		return CUDA_ERROR_NO_DEVICE;
	return CUDA_ERROR_UNKNOWN;
}

/* Caller holds @call_lock. */
static bool is_to_fail(const char *name)
{
	bool any = !strcmp(fail_name, "any");

	if (!fail_at || (!any && strcmp(fail_name, name)) ||
	    (any && is_release(name)))
		return false;
	return ++n_candidates == fail_at;
}

static void in_child(void)
{
	is_child = true;
}

/* Caller holds @call_lock. */
static void configure(void)
{
	if (is_configured)
		return;
	is_configured = true;
	fake_read_config();
	pthread_atfork(NULL, NULL, in_child);
}

/* Caller holds @call_lock. */
static void count(const char *name)
{
	int i;

	n_calls++;
	for (i = 0; i < N_COUNTERS && counters[i].name; i++)
		if (!strcmp(counters[i].name, name))
			break;
	if (i == N_COUNTERS)
		abort();
	counters[i].name = name;
	counters[i].n++;
}

static int enter(const char *name, bool early)
{
	int err = 0;

	/* A child of a process that uses CUDA cannot: no lock is tried. */
	if (is_child && is_initialized)
		return CUDA_ERROR_NOT_INITIALIZED;
	pthread_mutex_lock(&call_lock);
	configure();
	count(name);
	if (is_to_fail(name))
		err = failure_of(name);
	else if (!early && !is_initialized)
		err = CUDA_ERROR_NOT_INITIALIZED;
	else if (fake_me()->is_in_host_func)
		err = CUDA_ERROR_NOT_PERMITTED;
	pthread_mutex_unlock(&call_lock);
	if (err)
		return err;
	pthread_mutex_lock(&fake_lock);
	if (fake_has_ended)
		err = CUDA_ERROR_DEINITIALIZED;
	pthread_mutex_unlock(&fake_lock);
	return err;
}

int fake_enter(const char *name)
{
	return enter(name, false);
}

int fake_enter_early(const char *name)
{
	return enter(name, true);
}

bool fake_must_fail(const char *name)
{
	bool fails;

	pthread_mutex_lock(&call_lock);
	fails = is_to_fail(name);
	pthread_mutex_unlock(&call_lock);
	return fails;
}

int cuInit(unsigned int flags)
{
	int err = fake_enter_early(__func__);

	if (err)
		return err;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_config.n_devices)
		return CUDA_ERROR_NO_DEVICE;
	pthread_mutex_lock(&call_lock);
	is_initialized = true;
	pthread_mutex_unlock(&call_lock);
	return 0;
}

int cuDriverGetVersion(int *version)
{
	int err = fake_enter_early(__func__);

	if (err)
		return err;
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = fake_config.version;
	return 0;
}

uint64_t fakeCudaCalls(const char *name)
{
	uint64_t n = 0;
	int i;

	pthread_mutex_lock(&call_lock);
	if (!name)
		n = n_calls;
	for (i = 0; name && i < N_COUNTERS && counters[i].name; i++)
		if (!strcmp(counters[i].name, name))
			n = counters[i].n;
	pthread_mutex_unlock(&call_lock);
	return n;
}

int fakeCudaLeaks(struct fake_leaks *out)
{
	struct fake_leaks leaks = {0};

	if (is_child && is_initialized)
		return 0;
	pthread_mutex_lock(&fake_lock);
	fake_count_ranges(&leaks);
	leaks.streams = fake_n_streams();
	leaks.events = fake_n_events();
	leaks.modules = fake_n_modules();
	leaks.retained = fake_n_contexts();
	pthread_mutex_unlock(&fake_lock);
	if (out)
		*out = leaks;
	return leaks.allocations + leaks.registrations + leaks.imports +
	       leaks.streams + leaks.events + leaks.modules + leaks.retained;
}

/*
 * The threads of streams end when the process does: some hundred microseconds,
 * since none of them waits for longer than that without looking.
 */
static void __attribute__((destructor)) end(void)
{
	struct CUstream_st *stream;
	struct timespec ts;
	bool is_left;

	free(pthread_getspecific(thread_key));
	pthread_setspecific(thread_key, NULL);
	if (is_child && is_initialized)
		return;
	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += 5;
	pthread_mutex_lock(&fake_lock);
	fake_has_ended = true;
	do {
		is_left = false;
		for (stream = fake_streams(); stream; stream = stream->next) {
			pthread_cond_signal(&stream->has_work);
			is_left |= stream->has_thread;
		}
		pthread_cond_broadcast(&fake_changed);
	} while (is_left &&
		 !pthread_cond_timedwait(&fake_changed, &fake_lock, &ts));
	pthread_mutex_unlock(&fake_lock);
}
