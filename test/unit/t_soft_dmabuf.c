/* SPDX-License-Identifier: MIT */
/*
 * Goal: what is registered by a descriptor that cannot be sealed, as those of
 * memory of a GPU are, is reached by peers as any other, and only what can be
 * reached is registered.  Method: memfds without seals, which the owner has not
 * mapped, in pairs within a process and across fork(), with and without the
 * system's leave to reach into it; descriptors that are of no use; and the
 * kernel's list of mappings.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>

#include "soft_pair.h"

#define FILE_BYTES 20000
#define OFFSET 4808u /* in a page, on a multiple of 8 */
#define BYTES 9000u
#define IOVA 0x7000000012c8ull /* nothing is mapped there */
#define ACCESS (PAIR_ACCESS | IBV_ACCESS_REMOTE_ATOMIC)

static const struct pair_args usual = {.access = ACCESS, .mr_access = ACCESS};

static int unsealed_new(void)
{
	int fd = memfd_create("unsealed", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, FILE_BYTES), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), -1);
	return fd;
}

static struct ibv_mr *unsealed_mr(struct pair_end *end, int fd)
{
	struct ibv_mr *mr = end->verbs->reg_dmabuf_mr(end->pd, OFFSET, BYTES,
						      IOVA, fd, ACCESS);

	assert_non_null(mr);
	assert_int_equal(mr->length, BYTES);
	return mr;
}

static int count_mappings(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, name) != NULL;
	fclose(maps);
	return n;
}

static void request(struct pair_end *end, enum ibv_wr_opcode opcode,
		    uint32_t rkey, uint64_t at, uint32_t bytes,
		    enum ibv_wc_status status)
{
	struct pair_wr w;

	pair_wr_init(&w, end, opcode, 0, 0, bytes);
	w.wr.wr.rdma.rkey = rkey;
	w.wr.wr.rdma.remote_addr = IOVA + at;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		w.wr.wr.atomic.rkey = rkey;
		w.wr.wr.atomic.remote_addr = IOVA + at;
		w.wr.wr.atomic.compare_add = 1;
		w.wr.wr.atomic.swap = 0;
	}
	assert_int_equal(pair_post(end, &w), 0);
	pair_expect(end, 0, status);
}

static void fill(char *at, size_t n, int seed)
{
	size_t i;

	for (i = 0; i < n; i++)
		at[i] = (char)(i * 31 + (size_t)seed);
}

/* All of it, its ends, a word added to, and what lies around it. */
static void use(struct pair_end *end, uint32_t rkey)
{
	static char want[BYTES];
	uint64_t word;

	fill(want, BYTES, 7);
	memcpy(end->buf, want, BYTES);
	request(end, IBV_WR_RDMA_WRITE, rkey, 0, BYTES, IBV_WC_SUCCESS);
	memset(end->buf, 0, BYTES);
	request(end, IBV_WR_RDMA_READ, rkey, 1, BYTES - 1, IBV_WC_SUCCESS);
	assert_memory_equal(end->buf, want + 1, BYTES - 1);
	request(end, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, 8, 8, IBV_WC_SUCCESS);
	memcpy(&word, want + 8, 8);
	assert_memory_equal(end->buf, &word, 8);
	memcpy(end->buf, "end", 3);
	request(end, IBV_WR_RDMA_WRITE, rkey, BYTES - 3, 3, IBV_WC_SUCCESS);
}

static void check_use(int fd)
{
	static char got[FILE_BYTES], want[BYTES];
	uint64_t word;
	size_t i;

	assert_int_equal(pread(fd, got, FILE_BYTES, 0), FILE_BYTES);
	fill(want, BYTES, 7);
	memcpy(&word, want + 8, 8);
	word++;
	memcpy(want + 8, &word, 8);
	memcpy(want + BYTES - 3, "end", 3);
	assert_memory_equal(got + OFFSET, want, BYTES);
	for (i = 0; i < FILE_BYTES; i++)
		if (i < OFFSET || i >= OFFSET + BYTES)
			assert_int_equal(got[i], 0);
}

static void threads_of_a_process_reach_it(void **state)
{
	struct pair_end a, b;
	struct ibv_mr *mr;
	int fd = unsealed_new();

	(void)state;
	pair_open(&a, &b, &usual);
	mr = unsealed_mr(&b, fd);
	use(&a, mr->rkey);
	check_use(fd);
	/* By load and store it cannot be had: it might shrink. */
	assert_null(a.verbs->map(a.qp, mr->rkey, IOVA, 8));
	request(&a, IBV_WR_RDMA_WRITE, mr->rkey, BYTES - 2, 3,
		IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(b.verbs->dereg_mr(mr), 0);
	pair_close(&a, &b);
	assert_int_equal(count_mappings("unsealed"), 0);
	close(fd);
}

static void owner(struct pair_end *b, int socket)
{
	int fd = unsealed_new();
	struct ibv_mr *mr = unsealed_mr(b, fd);

	assert_int_equal(write(socket, &mr->rkey, 4), 4);
	pair_meet(socket);
	check_use(fd);
	pair_meet(socket);
	pair_meet(socket);
	assert_int_equal(b->verbs->dereg_mr(mr), 0);
	assert_int_equal(count_mappings("unsealed"), 0);
	close(fd);
	pair_end_close(b);
}

static void reach_across(void)
{
	struct pair_end a;
	int socket;
	uint32_t rkey;
	pid_t pid = pair_fork(&a, &socket, &usual, owner);

	assert_int_equal(read(socket, &rkey, 4), 4);
	use(&a, rkey);
	assert_null(a.verbs->map(a.qp, rkey, IOVA, 8));
	assert_int_equal(count_mappings("unsealed"), 0);
	pair_meet(socket);
	pair_meet(socket);
	request(&a, IBV_WR_RDMA_READ, rkey, BYTES, 1, IBV_WC_REM_ACCESS_ERR);
	pair_meet(socket);
	pair_end_close(&a);
	close(socket);
	pair_reap(pid);
}

static void other_processes_reach_it(void **state)
{
	(void)state;
	reach_across();
}

static void other_processes_reach_it_by_its_owner(void **state)
{
	(void)state;
	setenv("WREATH_SOFT_FAULTS", "bounce=always", 1);
	reach_across();
	unsetenv("WREATH_SOFT_FAULTS");
}

/* Local requests too: what a flush READs. */
static void it_outlives_the_callers_mapping(void **state)
{
	struct pair_end a, b;
	struct ibv_mr *mr;
	struct pair_wr w;
	int fd = unsealed_new();
	char *at;

	(void)state;
	pair_open(&a, &b, &usual);
	at = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(at != MAP_FAILED);
	mr = a.verbs->reg_dmabuf_mr(a.pd, 0, FILE_BYTES, (uintptr_t)at, fd,
				    ACCESS);
	assert_non_null(mr);
	memcpy(at + 100, "kept", 4);
	munmap(at, FILE_BYTES);
	close(fd);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 4);
	w.sge.addr = (uintptr_t)at + 100;
	w.sge.lkey = mr->lkey;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_memory_equal(b.buf, "kept", 4);
	assert_int_equal(a.verbs->dereg_mr(mr), 0);
	pair_close(&a, &b);
	assert_int_equal(count_mappings("unsealed"), 0);
}

static void refused(struct pair_end *end, int fd, size_t bytes, int err)
{
	errno = 0;
	assert_null(end->verbs->reg_dmabuf_mr(end->pd, 0, bytes, IOVA, fd,
					      PAIR_ACCESS));
	assert_int_equal(errno, err);
}

static void what_cannot_be_mapped_is_refused(void **state)
{
	struct pair_end end;
	int fd = unsealed_new();
	char path[64];
	int only_read;

	(void)state;
	pair_end_open(&end, &usual);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	only_read = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(only_read >= 0);
	refused(&end, only_read, 4096, EOPNOTSUPP);
	refused(&end, fd, FILE_BYTES + 1, EINVAL);
	refused(&end, -1, 1, EINVAL);
	/* Its size says nothing: nothing is behind the second page. */
	assert_int_equal(ftruncate(fd, 1), 0);
	refused(&end, fd, 4096, EINVAL);
	close(only_read);
	close(fd);
	assert_int_equal(count_mappings("unsealed"), 0);
	pair_end_close(&end);
}

static void a_failed_registration_leaves_nothing(void **state)
{
	struct pair_end end;
	int fd = unsealed_new();

	(void)state;
	pair_end_open(&end, &usual);
	assert_int_equal(soft_fault(end.context, "fail_reg=1"), 0);
	refused(&end, fd, 4096, ENOMEM);
	assert_int_equal(count_mappings("unsealed"), 0);
	close(fd);
	pair_end_close(&end);
}

/* As device memory looks to the processor. */
static void memory_out_of_reach_is_refused_at_once(void **state)
{
	struct pair_end end;
	char *at = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);

	(void)state;
	pair_end_open(&end, &usual);
	errno = 0;
	assert_null(end.verbs->reg_mr(end.pd, at, 8192, PAIR_ACCESS));
	assert_int_equal(errno, EFAULT);
	munmap(at, 8192);
	pair_end_close(&end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_of_a_process_reach_it),
		cmocka_unit_test(other_processes_reach_it),
		cmocka_unit_test(other_processes_reach_it_by_its_owner),
		cmocka_unit_test(it_outlives_the_callers_mapping),
		cmocka_unit_test(what_cannot_be_mapped_is_refused),
		cmocka_unit_test(a_failed_registration_leaves_nothing),
		cmocka_unit_test(memory_out_of_reach_is_refused_at_once),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
