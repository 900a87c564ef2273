/* SPDX-License-Identifier: MIT */
/*
 * Goal: GPUs are described, their memory is allocated, freed and exported as
 * DMA-BUF, and host memory is pinned, by as many users as there are; what
 * cannot be is told.
 * Method: calls of each kind on simulated devices of several settings.
 */
#define _GNU_SOURCE
#include <sys/stat.h>

#include "reduce/gpu.h"
#include "test/unit/mem_gpu.h"

static void describe(void)
{
	struct mem_gpu_info first, second;

	OK(mem_cuda_load());
	CHECK(mem_gpu_count() == 3);
	OK(mem_gpu_info(0, &first));
	OK(mem_gpu_info(2, &second));
	CHECK(first.name[0] && first.bytes && first.major > 0);
	CHECK(strlen(first.pci) == 12 && strcmp(first.pci, second.pci));
	CHECK(memcmp(first.uuid, second.uuid, sizeof(first.uuid)));
	CHECK(first.has_kernels || strstr(first.why, "nvcc"));
	FAILS(WREATH_EINVAL, mem_gpu_info(3, &first));
	CHECK(tells("0..2") && tells("CUDA_VISIBLE_DEVICES"));
	FAILS(WREATH_EINVAL, mem_gpu_info(-1, &first));
	/* To look at a GPU is not to use it. */
	CHECK(!CU(fakeCudaLeaks)(NULL));
}

static void old_one(void)
{
	struct mem_gpu_info info;

	OK(mem_gpu_info(0, &info));
	CHECK(info.needs_flush && info.has_dmabuf);
}

static void new_one(void)
{
	struct mem_gpu_info info;

	OK(mem_gpu_info(0, &info));
	CHECK(!info.needs_flush && info.major == 9 && !info.has_dmabuf);
}

static void gpus_are_described(void **unused)
{
	(void)unused;
	gpu_case("devices=3", describe);
	gpu_case("", old_one);
	gpu_case("hopper,nodmabuf", new_one);
}

static void allocate(void)
{
	struct mem_where where;
	struct mem_gpu *gpu;
	char *ptr = new_memory(100, 1);
	void *other;

	OK(mem_where(ptr, &where));
	CHECK(where.kind == MEM_DEVICE && where.gpu == 1);
	CHECK(where.base == ptr && where.bytes % ((size_t)2 << 20) == 0);
	FAILS(WREATH_EINVAL, mem_free(ptr + 1));
	OK(mem_free(ptr));
	FAILS(WREATH_EINVAL, mem_free(ptr));
	CHECK(tells("wreath_mem_alloc_gpu"));
	FAILS(WREATH_EINVAL, mem_gpu_alloc(0, 0, &other));
	FAILS(WREATH_EINVAL, mem_gpu_alloc(SIZE_MAX, 0, &other));
	FAILS(WREATH_EINVAL, mem_gpu_alloc(100, 2, &other));
	FAILS(WREATH_EINVAL, mem_gpu_alloc(100, -1, &other));
	FAILS(WREATH_EINVAL, mem_gpu_open(2, 4096, &gpu));
	FAILS(WREATH_ENOMEM, mem_gpu_alloc((size_t)1 << 40, 0, &other));
	CHECK(tells("1099511627776 bytes") && tells("GPU 0"));
}

static void memory_is_allocated_and_freed(void **unused)
{
	(void)unused;
	gpu_case("", allocate);
}

static void dmabuf(void)
{
	char *ours = new_memory(100000, 0);
	char *host = new_memory(100, -1);
	char *odd;
	uint64_t offset;
	struct stat stat;
	int fd;

	kit_use(1);
	odd = (char *)(uintptr_t)kit_alloc(1000);
	OK(mem_dmabuf(ours, 100000, &fd, &offset));
	CHECK(!offset && !fstat(fd, &stat));
	close(fd);
	/* From its page, or from the allocation's. */
	OK(mem_dmabuf(ours + 5000, 10, &fd, &offset));
	CHECK(offset % 4096 == 5000 % 4096);
	close(fd);
	OK(mem_dmabuf(odd + 1, 999, &fd, &offset));
	CHECK(offset % 4096 == ((uintptr_t)odd + 1) % 4096);
	close(fd);
	FAILS(WREATH_EINVAL, mem_dmabuf(odd + 1, 1000, &fd, &offset));
	FAILS(WREATH_EINVAL, mem_dmabuf(odd, 0, &fd, &offset));
	FAILS(WREATH_EINVAL, mem_dmabuf(host, 100, &fd, &offset));
	CHECK(tells("one allocation"));
	OK(CU(cuMemFree_v2)((uintptr_t)odd));
	FAILS(WREATH_EINVAL, mem_dmabuf(odd, 10, &fd, &offset));
	OK(mem_free(ours));
	OK(mem_free(host));
	kit_leave(1);
}

static void no_dmabuf(void)
{
	char *ours = new_memory(100000, 0);
	uint64_t offset;
	int fd;

	FAILS(WREATH_EUNSUP, mem_dmabuf(ours, 100, &fd, &offset));
	CHECK(tells("DMA-BUF") && tells("open kernel modules"));
	OK(mem_free(ours));
}

static void memory_is_described_to_devices(void **unused)
{
	(void)unused;
	gpu_case("", dmabuf);
	gpu_case("nodmabuf", no_dmabuf);
}

static enum mem_kind kind(const void *ptr)
{
	struct mem_where where;

	OK(mem_where(ptr, &where));
	return where.kind;
}

static void pin(void)
{
	struct mem_gpu *gpu;
	char *page = mmap(NULL, 16384, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *shared = new_memory(8192, -1);
	void *pinned;

	mem_unpin(page);
	gpu = open_gpu(0, 4096);
	/* As often as it was pinned. */
	OK(mem_pin(page, 8192));
	OK(mem_pin(page, 4096));
	CHECK(kind(page + 8191) == MEM_PINNED);
	mem_unpin(page);
	CHECK(kind(page) == MEM_PINNED);
	mem_unpin(page);
	mem_unpin(page);
	CHECK(kind(page) == MEM_HOST);
	/* What someone else pinned counts, and stays his. */
	kit_use(0);
	OK(CU(cuMemHostRegister_v2)(page, 8192, 0));
	OK(mem_pin(page, 8192));
	mem_unpin(page);
	CHECK(kind(page) == MEM_PINNED);
	/* Where that is a part, it does not. */
	base_error_again(0, "");
	FAILS(WREATH_EUNSUP, mem_pin(page, 16384));
	CHECK(!*base_error_text());
	OK(CU(cuMemHostUnregister)(page));
	kit_leave(0);
	OK(mem_pin(shared, 8192));
	CHECK(kind(shared) == MEM_PINNED);
	mem_unpin(shared);
	CU(fakeCudaFail)("cuMemHostRegister_v2", 1);
	FAILS(WREATH_EUNSUP, mem_pin(shared, 8192));
	CU(fakeCudaFail)(NULL, 0);
	OK(mem_pinned_new(5000, &pinned));
	CHECK(kind(pinned) == MEM_PINNED && !((char *)pinned)[4999]);
	mem_pinned_free(pinned);
	mem_pinned_free(NULL);
	OK(mem_free(shared));
	mem_gpu_close(gpu);
	munmap(page, 16384);
}

static void nothing_to_pin_for(void)
{
	static char page[4096] __attribute__((aligned(4096)));

	FAILS(WREATH_EUNSUP, mem_pin(page, sizeof(page)));
	mem_unpin(page);
	CHECK(!*base_error_text());
	_exit(0);
}

static void host_memory_is_pinned_once(void **unused)
{
	(void)unused;
	set_image("fake");
	kit_case("", nothing_to_pin_for);
	gpu_case("", pin);
}

static void image_of(const char *bytes, const char *reduce, int want,
		     const char *word)
{
	struct mem_gpu *gpu;

	if (bytes)
		set_image(bytes);
	setenv("WREATH_GPU_REDUCE", reduce, 1);
	if (want) {
		FAILS(want, mem_gpu_open(0, 4096, &gpu));
		CHECK(tells(word));
		return;
	}
	gpu = open_gpu(0, 4096);
	CHECK(!strcmp(mem_gpu_about(gpu)->why, word));
	CHECK(mem_gpu_about(gpu)->has_kernels == !*word);
	CHECK(mem_gpu_number(gpu) == 0);
	mem_gpu_close(gpu);
}

static void images(void)
{
	/* The kernels are loaded when someone wants them first. */
	image_of("nonsense", "host", 0, "WREATH_GPU_REDUCE=host");
	image_of("nonsense", "auto", WREATH_EINVAL, "WREATH_GPU_IMAGE");
	image_of("nonsense", "gpu", WREATH_EINVAL, "INVALID_IMAGE");
	image_of("", "auto", WREATH_EINVAL, "not a file of 1..");
	setenv("WREATH_GPU_IMAGE", "/nonexistent", 1);
	image_of(NULL, "auto", WREATH_EINVAL, "/nonexistent");
	setenv("WREATH_GPU_IMAGE", "/", 1);
	image_of(NULL, "auto", WREATH_EINVAL, "not a file");
	image_of("fake", "auto", 0, "");
	image_of("fake", "gpu", 0, "");
	image_of("fake", "host", 0, "WREATH_GPU_REDUCE=host");
	_exit(0);
}

static void an_image_must_be_one(void **unused)
{
	(void)unused;
	kit_case("", images);
	unsetenv("WREATH_GPU_REDUCE");
}

static void unloadable(void)
{
	struct mem_gpu *gpu;
	size_t bytes;

	unsetenv("WREATH_GPU_IMAGE");
	if (reduce_gpu_image(&bytes))
		CU(fakeCudaFail)("cuModuleLoadData", 1);
	setenv("WREATH_GPU_REDUCE", "gpu", 1);
	FAILS(WREATH_EUNSUP, mem_gpu_open(0, 4096, &gpu));
	CHECK(tells("WREATH_GPU_REDUCE=gpu") && tells("no kernels"));
	setenv("WREATH_GPU_REDUCE", "auto", 1);
	gpu = open_gpu(0, 4096);
	CHECK(!mem_gpu_about(gpu)->has_kernels && mem_gpu_about(gpu)->why[0]);
	mem_gpu_close(gpu);
	_exit(0);
}

static void no_words(void)
{
	struct mem_gpu *gpu;

	FAILS(WREATH_EUNSUP, mem_gpu_open(0, 4096, &gpu));
	CHECK(tells("cuStreamWriteValue32") && tells("GPU 0"));
}

static void a_gpu_without_words_is_refused(void **unused)
{
	(void)unused;
	set_image("fake");
	gpu_case("nomemops", no_words);
}

static void without_kernels_folds_are_staged(void **unused)
{
	(void)unused;
	kit_case("", unloadable);
	unsetenv("WREATH_GPU_REDUCE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpus_are_described),
		cmocka_unit_test(memory_is_allocated_and_freed),
		cmocka_unit_test(memory_is_described_to_devices),
		cmocka_unit_test(host_memory_is_pinned_once),
		cmocka_unit_test(an_image_must_be_one),
		cmocka_unit_test(a_gpu_without_words_is_refused),
		cmocka_unit_test(without_kernels_folds_are_staged),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
