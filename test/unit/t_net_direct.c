/* SPDX-License-Identifier: MIT */
/*
 * Goal: how a device reaches memory of a GPU is told: to whoever asks, and once
 * for each port and GPU in the log, as a warning where the fast way could be
 * expected, with the causes and what to do.  Method: the texts, and what is
 * written to stderr, on simulated drivers that lack one way or the other.
 */
#define _GNU_SOURCE
#include "test/unit/net_gpu.h"

static const int gpus[2] = {0, 0};
static const char *const *expected; /* ends with NULL */

static void contains(const char *text, const char *what)
{
	if (strstr(text, what))
		return;
	fprintf(stderr, "'%s' is not in: %s\n", what, text);
	_exit(1);
}

static void tells_text(void)
{
	const struct verbs_table *table;
	struct verbs_device *device;
	const char *const *word;
	char text[1024];
	int n_fds;

	setenv("WREATH_SOFT", "roce:1", 1);
	OK(base_env_load(&env));
	OK(soft_table(&table));
	OK(mem_cuda_load());
	n_fds = count_fds();
	OK(verbs_device_open(table, "soft0", &device));
	net_gpu_text(device, 0, &env, text, sizeof(text));
	for (word = expected; *word; word++)
		contains(text, *word);
	/* There is none of that number. */
	net_gpu_text(device, 7, &env, text, sizeof(text));
	contains(text, "not known: ");
	contains(text, "GPU 7");
	net_gpu_text(device, 0, &env, text, 20);
	CHECK(strlen(text) < 20);
	verbs_device_close(device);
	CHECK(count_fds() == n_fds);
}

static void who_asks_is_told(void **unused)
{
	static const char *const dmabuf[] = {"by DMA-BUF", NULL};
	static const char *const peermem[] = {"by nvidia-peermem", NULL};
	static const char *const none[] = {
		"through memory of the host: ", "DMA-BUF: ", "CUDA 11.7",
		"; nvidia-peermem: ", "Bad address", NULL};
	static const char *const off[] = {
		"through memory of the host: WREATH_GPU_DIRECT=off", NULL};

	(void)unused;
	expected = dmabuf;
	gpu_case("", tells_text);
	expected = peermem;
	gpu_case("nodmabuf,peermem", tells_text);
	expected = none;
	gpu_case("nodmabuf", tells_text);
	setenv("WREATH_GPU_DIRECT", "off", 1);
	expected = off;
	gpu_case("", tells_text);
	unsetenv("WREATH_GPU_DIRECT");
}

/* What is written to stderr until the case ends. */
static char *record(int *stop)
{
	static char text[1 << 16];
	int fd = memfd_create("stderr", MFD_CLOEXEC);

	if (!stop) {
		memset(text, 0, sizeof(text));
		CHECK(pread(STDERR_FILENO, text, sizeof(text) - 1, 0) >= 0);
		close(fd);
		return text;
	}
	*stop = dup(STDERR_FILENO);
	CHECK(*stop >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	close(fd);
	return NULL;
}

static int count(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static bool is_real;
static const char *line;

static void logs(void)
{
	struct mem_region region;
	const char *const *word;
	void *out[2];
	uint32_t key;
	char *text;
	int old, i;

	pair_open("completion", gpus);
	conns[1]->port->is_soft = !is_real;
	base_log_level_set(is_real ? BASE_LOG_WARN : BASE_LOG_INFO);
	for (i = 0; i < 2; i++)
		out[i] = (void *)(uintptr_t)kit_alloc(BYTES);
	record(&old);
	for (i = 0; i < 6; i++) {
		CHECK(mem_gpu_region(out[i % 2], 1, &region));
		net_mr_key(nets[1], conns[1]->port, &region, &key);
		net_flush(nets[1], 1000);
	}
	text = record(NULL);
	dup2(old, STDERR_FILENO);
	close(old);
	for (word = expected; *word; word++)
		contains(text, *word);
	if (count(text, line) != 1) {
		fprintf(stderr, "'%s' is not once in: %s\n", line, text);
		_exit(1);
	}
	for (i = 0; i < 2; i++)
		OK(CU(cuMemFree_v2)((uintptr_t)out[i]));
	pair_close(gpus);
}

static void the_log_is_told_once(void **unused)
{
	static const char *const way[] = {"info: ", "soft0:1", NULL};
	static const char *const reasons[] = {
		"warn: soft0:1", "DMA-BUF: ", "CUDA 11.7", "nvidia-peermem: ",
		"WREATH_GPU_DIRECT=off says that this is meant", NULL};
	static const char *const soft[] = {"info: soft0:1", NULL};

	(void)unused;
	expected = way;
	line = " reaches memory of GPU 0 by DMA-BUF";
	kit_case_once("", logs);
	expected = soft;
	line = " does not reach memory of GPU 0";
	kit_case_once("nodmabuf", logs);
	is_real = true;
	expected = reasons;
	kit_case_once("nodmabuf", logs);
	is_real = false;
	setenv("WREATH_GPU_DIRECT", "off", 1);
	expected = soft;
	kit_case_once("", logs);
	unsetenv("WREATH_GPU_DIRECT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_asks_is_told),
		cmocka_unit_test(the_log_is_told_once),
	};

	alarm(100);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
