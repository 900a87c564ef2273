/* SPDX-License-Identifier: MIT */
/*
 * Goal: memory of the simulated GPUs is shared with other processes and with
 * devices as by the driver.
 * Method: the program runs itself with a handle as its argument, and both sides
 * say what they see.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "test/unit/cuda_kit.h"

#define BYTES ((size_t)5000)

static const char *mode; /* of the other process */

static void text_of(const struct cu_ipc *handle, char *out)
{
	size_t i;

	for (i = 0; i < sizeof(handle->bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", handle->bytes[i]);
}

static void handle_of(const char *text, struct cu_ipc *out)
{
	char hex[3] = "";
	size_t i;

	for (i = 0; i < sizeof(out->bytes); i++) {
		memcpy(hex, text + 2 * i, 2);
		out->bytes[i] = (unsigned char)strtoul(hex, NULL, 16);
	}
}

static int run_other(const struct cu_ipc *handle)
{
	char text[2 * sizeof(*handle) + 1];
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	int status = -1;
	pid_t pid;

	CHECK(n > 0);
	path[n] = 0;
	text_of(handle, text);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		execl(path, path, mode, text, (char *)NULL);
		_exit(3);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

static void export(void)
{
	struct cu_ipc handle;
	cu_ptr ptr, same;
	char bytes[BYTES];

	OK(CU(cuInit)(0));
	kit_use(1);
	ptr = kit_alloc(BYTES);
	OK(CU(cuMemsetD8_v2)(ptr, 3, BYTES));
	FAILS(CUDA_ERROR_INVALID_VALUE,
	      CU(cuIpcGetMemHandle)(&handle, ptr + 1));
	OK(CU(cuIpcGetMemHandle)(&handle, ptr));
	OK(CU(cuCtxSynchronize)());
	FAILS(CUDA_ERROR_INVALID_CONTEXT,
	      CU(cuIpcOpenMemHandle_v2)(&same, handle, 1));
	mode = "import";
	CHECK(!run_other(&handle));
	OK(CU(cuMemcpyDtoH_v2)(bytes, ptr, BYTES));
	CHECK(bytes[0] == 4 && bytes[BYTES - 1] == 4);
	OK(CU(cuMemFree_v2)(ptr));
	mode = "gone";
	CHECK(!run_other(&handle));
	kit_leave(1);
}

static void memory_is_opened_in_another_process(void **state)
{
	(void)state;
	kit_case("", export);
	kit_case("peermem,hopper", export);
}

static struct cu_ipc given;

static void import(void)
{
	char bytes[BYTES];
	cu_ptr ptr, again, base;
	size_t n;
	int device = -1;

	OK(CU(cuInit)(0));
	kit_use(0);
	FAILS(CUDA_ERROR_INVALID_VALUE,
	      CU(cuIpcOpenMemHandle_v2)(&ptr, given, 0));
	OK(CU(cuIpcOpenMemHandle_v2)(&ptr, given, 1));
	OK(CU(cuIpcOpenMemHandle_v2)(&again, given, 1));
	CHECK(ptr == again);
	OK(CU(cuMemGetAddressRange_v2)(&base, &n, ptr + 100));
	CHECK(base == ptr && n == BYTES);
	OK(CU(cuPointerGetAttribute)(&device,
				     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ptr));
	CHECK(device == 1);
	OK(CU(cuMemcpyDtoH_v2)(bytes, ptr, BYTES));
	CHECK(bytes[0] == 3 && bytes[BYTES - 1] == 3);
	OK(CU(cuMemsetD8_v2)(ptr, 4, BYTES));
	OK(CU(cuCtxSynchronize)());
	OK(CU(cuIpcCloseMemHandle)(ptr));
	FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemFree_v2)(ptr));
	OK(CU(cuIpcCloseMemHandle)(ptr));
	FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuIpcCloseMemHandle)(ptr));
	given.bytes[20] ^= 1;
	FAILS(CUDA_ERROR_INVALID_HANDLE,
	      CU(cuIpcOpenMemHandle_v2)(&ptr, given, 1));
	kit_leave(0);
}

static void import_gone(void)
{
	cu_ptr ptr;

	OK(CU(cuInit)(0));
	kit_use(0);
	FAILS(CUDA_ERROR_MAP_FAILED,
	      CU(cuIpcOpenMemHandle_v2)(&ptr, given, 1));
	kit_leave(0);
}

static void no_export(void)
{
	struct cu_ipc handle;
	cu_ptr ptr;
	int fd;

	OK(CU(cuInit)(0));
	kit_use(0);
	ptr = kit_alloc(BYTES);
	FAILS(CUDA_ERROR_NOT_SUPPORTED, CU(cuIpcGetMemHandle)(&handle, ptr));
	FAILS(CUDA_ERROR_NOT_SUPPORTED,
	      CU(cuMemGetHandleForAddressRange)(&fd, ptr & ~4095ull, 4096, 1,
						0));
	OK(CU(cuMemFree_v2)(ptr));
	kit_leave(0);
}

static void sharing_may_be_missing(void **state)
{
	(void)state;
	kit_case("noipc,nodmabuf", no_export);
}

static void dmabuf(void)
{
	unsigned char *at;
	char byte = 0;
	cu_ptr ptr;
	int fd = -1;

	OK(CU(cuInit)(0));
	kit_use(0);
	ptr = kit_alloc((size_t)3 << 20);
	FAILS(CUDA_ERROR_INVALID_VALUE,
	      CU(cuMemGetHandleForAddressRange)(&fd, ptr, 5, 1, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE,
	      CU(cuMemGetHandleForAddressRange)(&fd, ptr, (size_t)4 << 20, 1,
						0));
	OK(CU(cuMemGetHandleForAddressRange)(&fd, ptr, (size_t)3 << 20, 1, 0));
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	CHECK(at[0] == 0xfb);
	at[1] = 9;
	OK(CU(cuMemcpyDtoH_v2)(&byte, ptr + 1, 1));
	CHECK(byte == 9);
	OK(CU(cuFlushGPUDirectRDMAWrites)(0, 100));
	munmap(at, 4096);
	close(fd);
	OK(CU(cuMemFree_v2)(ptr));
	kit_leave(0);
}

static void a_descriptor_shows_the_memory(void **state)
{
	(void)state;
	kit_case("", dmabuf);
}

static void be_forked(void)
{
	int status = -1;
	int count;
	pid_t pid;

	OK(CU(cuInit)(0));
	kit_use(0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		FAILS(CUDA_ERROR_NOT_INITIALIZED, CU(cuDeviceGetCount)(&count));
		FAILS(CUDA_ERROR_NOT_INITIALIZED, CU(cuInit)(0));
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	OK(CU(cuDeviceGetCount)(&count));
	kit_leave(0);
}

static void a_child_of_a_process_with_cuda_has_none(void **state)
{
	(void)state;
	kit_case("", be_forked);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_opened_in_another_process),
		cmocka_unit_test(sharing_may_be_missing),
		cmocka_unit_test(a_descriptor_shows_the_memory),
		cmocka_unit_test(a_child_of_a_process_with_cuda_has_none),
	};

	if (argc == 3) {
		handle_of(argv[2], &given);
		kit_run(strcmp(argv[1], "gone") ? import : import_gone);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
