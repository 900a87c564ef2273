/* SPDX-License-Identifier: MIT */
/*
 * Goal: a peer's memory can be mapped, and goes when the peer gives it up.
 * Method: a pair across fork(), and the kernel's list of mappings.
 */
#define _GNU_SOURCE
#include "soft_pair.h"

static void maps(struct pair_end *b, int socket)
{
	char *at;

	pair_meet(socket);
	at = b->verbs->map(b->qp, b->other.rkey, b->other.addr + 100, 8);
	assert_non_null(at);
	memcpy(at, "mapped!", 8);
	assert_null(b->verbs->map(b->qp, b->other.rkey ^ 3, b->other.addr, 8));
	pair_meet(socket);
	pair_end_close(b);
}

/* Mappings of @name in this process. */
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

static void gives_up(struct pair_end *b, int socket)
{
	int fd = memfd_create("given-up", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct ibv_mr *mr;

	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	mr = b->verbs->reg_dmabuf_mr(b->pd, 0, 1 << 20, 0, fd, PAIR_ACCESS);
	assert_non_null(mr);
	assert_int_equal(write(socket, &mr->rkey, 4), 4);
	pair_meet(socket);
	assert_int_equal(b->verbs->dereg_mr(mr), 0);
	close(fd);
	pair_meet(socket);
	pair_end_close(b);
}

static void memory_that_a_peer_gives_up_is_let_go(void **state)
{
	struct pair_args args = {0};
	struct pair_end a;
	struct pair_wr w;
	uint32_t rkey;
	int socket, i;
	pid_t pid;

	(void)state;
	pid = pair_fork(&a, &socket, &args, gives_up);
	assert_int_equal(read(socket, &rkey, 4), 4);
	pair_wr_init(&w, &a, IBV_WR_RDMA_WRITE, 0, 0, 8);
	w.wr.wr.rdma.rkey = rkey;
	w.wr.wr.rdma.remote_addr = 4096;
	assert_int_equal(pair_post(&a, &w), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_true(count_mappings("given-up") > 0);
	pair_meet(socket);
	for (i = 0; i < 5000 && count_mappings("given-up"); i++)
		pair_sleep_us(1000);
	assert_int_equal(count_mappings("given-up"), 0);
	pair_meet(socket);
	pair_end_close(&a);
	pair_reap(pid);
}

static void memory_of_another_process_can_be_mapped(void **state)
{
	struct pair_args args = {0};
	struct pair_end a;
	int socket;
	pid_t pid;

	(void)state;
	pid = pair_fork(&a, &socket, &args, maps);
	pair_meet(socket);
	pair_meet(socket);
	assert_string_equal(a.buf + 100, "mapped!");
	pair_end_close(&a);
	pair_reap(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_of_another_process_can_be_mapped),
		cmocka_unit_test(memory_that_a_peer_gives_up_is_let_go),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
