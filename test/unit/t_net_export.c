/* SPDX-License-Identifier: MIT */
/*
 * Goal: a rank stores into a peer's GPU memory in another process, through what
 * the peer exports in its mailbox, or by a device; and whatever stands there
 * instead, the rank breaks its net at the worst.  Method: two processes on the
 * simulated driver; and in one process entries of chance, or with bits turned
 * over, between a grant and its taking.
 */
#define _GNU_SOURCE
#include "test/unit/net_gpu.h"

#define OUTPUTS (NET_PLACE_OUTPUT | NET_PLACE_OUTPUT_GPU)
#define N_ROUNDS 12

static int socket_fd = -1;
static const char *arrival;

static void put(const void *data, size_t bytes)
{
	CHECK(write(socket_fd, data, bytes) == (ssize_t)bytes);
}

static void get(void *data, size_t bytes)
{
	CHECK(recv(socket_fd, data, bytes, MSG_WAITALL) == (ssize_t)bytes);
}

static void swap(const void *mine, void *theirs, size_t bytes)
{
	put(mine, bytes);
	get(theirs, bytes);
}

static void meet(void)
{
	char byte = 0;

	swap(&byte, &byte, 1);
}

static void end_connect(int rank)
{
	static char offers[2][NET_OFFER_MAX];
	struct net_record records[2];

	setenv("WREATH_SOFT", "roce:1", 1);
	setenv("WREATH_ARRIVAL", arrival, 1);
	OK(CU(cuInit)(0));
	end_open(rank, 0);
	net_offer(nets[rank], offers[rank]);
	swap(offers[rank], offers[!rank], NET_OFFER_MAX);
	end_agree(rank, offers[rank], offers[!rank]);
	OK(net_conn_new(nets[rank], !rank, 0, &records[rank]));
	swap(&records[rank], &records[!rank], sizeof(records[0]));
	OK(net_conn_ready(nets[rank], !rank, 0, &records[!rank]));
	meet();
	OK(net_conn_reach(nets[rank], !rank, 0));
	conns[rank] = net_conn(nets[rank], !rank, 0);
	CHECK(nets[rank]->has_ipc);
}

/* Rank 1's allocations come and go; each is written by rank 0. */
static void owner(void)
{
	struct mem_where where[2];
	struct net_granting what;
	uint32_t n;

	end_connect(1);
	for (n = 1; n <= N_ROUNDS; n++) {
		char *out = (char *)(uintptr_t)kit_alloc(BYTES);
		struct net_lane *to = &conns[1]->lanes[0];
		char *seen = alias(out, BYTES);

		what = gpu_granting(out, NULL, where);
		what.output = out + 512;
		what.output_bytes -= 512;
		OK(net_place_grant(conns[1], &what, n));
		CHECK(conns[1]->granted == (net_maps(conns[1])
						    ? OUTPUTS
						    : NET_PLACE_OUTPUT));
		await(to, n);
		OK(net_flush(nets[1], 1000));
		CHECK(!memcmp(seen + 512 + 3000 * n, "from afar", 9));
		CHECK((unsigned char)seen[512 + 3000 * n - 1] == 0xfb);
		OK(net_consume(to, 1));
		meet();
		OK(CU(cuMemFree_v2)((uintptr_t)out));
	}
	meet();
	end_close(1, 0);
}

static void writer(void)
{
	struct net_lane *from;
	uint64_t number;
	void *pinned;
	uint32_t n;

	end_connect(0);
	nets[0]->gpu = open_gpu(0, 4096);
	OK(mem_pinned_new(4096, &pinned));
	memcpy(pinned, "from afar", 9);
	from = &conns[0]->lanes[0];
	for (n = 1; n <= N_ROUNDS; n++) {
		char *map;

		CHECK(take(conns[0], n));
		CHECK(conns[0]->place.kinds == conns[0]->place_told);
		map = conns[0]->output_map;
		CHECK(!map == !net_maps(conns[0]));
		if (map)
			OK(mem_gpu_copy(nets[0]->gpu, map + 3000 * n, pinned,
					9, &number));
		else
			memcpy(net_slot(from), pinned, 9);
		drain(nets[0]->gpu);
		OK(net_send_place(from, 3000 * n, 9, n));
		meet();
	}
	mem_pinned_free(pinned);
	mem_gpu_close(nets[0]->gpu);
	meet();
	end_close(0, 0);
}

static void across(void)
{
	int sockets[2], status;
	pid_t pid;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid = fork();
	CHECK(pid >= 0);
	socket_fd = sockets[!pid];
	if (!pid) {
		alarm(60);
		owner();
		leave_nothing();
		_exit(0);
	}
	writer();
	close(sockets[0]);
	close(sockets[1]);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

static void a_rank_stores_into_memory_of_another_process(void **unused)
{
	(void)unused;
	arrival = "auto";
	kit_case_once("", across);
}

/* As over a network: a device writes there, and its owner is not asked. */
static void a_device_stores_into_memory_of_another_process(void **unused)
{
	(void)unused;
	arrival = "completion";
	kit_case_once("", across);
	kit_case_once("nodmabuf,peermem", across);
}

static const int gpus[2] = {0, 0};
#define N_LIES 3000

static uint64_t state;

static void lie(void)
{
	char *table = conns[1]->mailbox + NET_BOX_EXPORTS;
	size_t bytes = NET_EXPORTS * NET_EXPORT_BYTES;
	uint64_t how = next_random(&state);
	size_t i, n;

	switch (how % 4) {
	case 0: /* A few bits of what is there. */
		for (n = 1 + how / 4 % 4; n; n--) {
			i = next_random(&state) % sizeof(struct mem_export);
			table[i] ^= (char)(1 << next_random(&state) % 8);
		}
		break;
	case 1: /* All ones, or nothing, from somewhere on. */
		i = next_random(&state) % 128;
		memset(table + i, how & 4 ? 255 : 0, bytes - i);
		break;
	case 2:
		for (i = 0; i < bytes; i++)
			table[i] = (char)next_random(&state);
		break;
	default: /* A word of chance. */
		i = next_random(&state) % (sizeof(struct mem_export) / 8);
		how = next_random(&state);
		memcpy(table + i * 8, &how, 8);
	}
}

static void takes_lies(void)
{
	struct mem_where where[2], there;
	struct net_granting what;
	struct net_exports *exports;
	uint32_t n, n_broken = 0;
	void *out;

	state = seed_of_run();
	pair_open("auto", gpus);
	exports = &conns[1]->exports;
	nets[0]->gpu = open_gpu(0, 4096);
	out = (void *)(uintptr_t)kit_alloc(BYTES);
	what = gpu_granting(out, NULL, where);
	for (n = 1; n <= N_LIES; n++) {
		const char *at;

		memset(exports, 0, sizeof(*exports));
		OK(net_place_grant(conns[1], &what, n));
		CHECK(conns[1]->granted == OUTPUTS);
		lie();
		if (!take(conns[0], n)) {
			CHECK(nets[0]->failed == WREATH_ENET);
			CHECK(tells("WREATH_GPU_IPC=off") && tells("rank 1"));
			nets[0]->failed = 0;
			n_broken++;
			continue;
		}
		/* Whatever it is, all of it is memory of a GPU. */
		at = conns[0]->output_map;
		OK(mem_where(at, &there));
		CHECK(there.kind == MEM_DEVICE);
		CHECK(BYTES <= there.bytes - (size_t)(at - there.base));
	}
	CHECK(n_broken > N_LIES / 4);
	mem_gpu_close(nets[0]->gpu);
	OK(CU(cuMemFree_v2)((uintptr_t)out));
	pair_close(gpus);
}

static void an_export_that_is_a_lie_breaks_no_more_than_the_net(void **unused)
{
	(void)unused;
	kit_case_once("", takes_lies);
}

/* The grant itself: more than the allocation, or beside it. */
static void grants_too_much(void)
{
	static const struct {
		ptrdiff_t shift;
		size_t bytes;
	} rows[] = {
		{0, BYTES + 1}, {1, BYTES}, {-1, 1}, {-512, BYTES},
		{(ptrdiff_t)BYTES, 1}, {0, SIZE_MAX}, {64, SIZE_MAX - 63},
	};
	struct mem_where where[2];
	struct net_granting what;
	uint32_t i;
	char *out;

	pair_open("auto", gpus);
	nets[0]->gpu = open_gpu(0, 4096);
	out = (char *)(uintptr_t)kit_alloc(BYTES);
	for (i = 0; i < base_countof(rows); i++) {
		what = gpu_granting(out, NULL, where);
		what.output = (char *)((uintptr_t)out +
				       (uintptr_t)rows[i].shift);
		what.output_bytes = rows[i].bytes;
		OK(net_place_grant(conns[1], &what, i));
		/* The peer could not import it, and is not told to. */
		CHECK(!(conns[1]->granted & NET_PLACE_OUTPUT));
		CHECK(take(conns[0], i));
		CHECK(!(conns[0]->place_told & NET_PLACE_OUTPUT));
		CHECK(!conns[0]->output_map);
	}
	mem_gpu_close(nets[0]->gpu);
	OK(CU(cuMemFree_v2)((uintptr_t)out));
	pair_close(gpus);
}

static void what_is_beyond_an_allocation_is_not_granted(void **unused)
{
	(void)unused;
	gpu_case("", grants_too_much);
}

/* As if slots were mapped, where they are not. */
static void exports_out_of_reach(void)
{
	struct mem_where where[2];
	struct net_granting what;
	void *out;

	pair_open("completion", gpus);
	nets[0]->gpu = open_gpu(0, 4096);
	out = (void *)(uintptr_t)kit_alloc(BYTES);
	what = gpu_granting(out, NULL, where);
	conns[1]->port->line_order = true;
	OK(net_place_grant(conns[1], &what, 1));
	CHECK(conns[1]->granted == OUTPUTS);
	CHECK(!take(conns[0], 1));
	CHECK(nets[0]->failed == WREATH_ENET && tells("out of reach"));
	mem_gpu_close(nets[0]->gpu);
	OK(CU(cuMemFree_v2)((uintptr_t)out));
	pair_close(gpus);
}

static void an_export_that_cannot_be_read_breaks_the_net(void **unused)
{
	(void)unused;
	gpu_case("", exports_out_of_reach);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_stores_into_memory_of_another_process),
		cmocka_unit_test(
			a_device_stores_into_memory_of_another_process),
		cmocka_unit_test(
			an_export_that_is_a_lie_breaks_no_more_than_the_net),
		cmocka_unit_test(what_is_beyond_an_allocation_is_not_granted),
		cmocka_unit_test(an_export_that_cannot_be_read_breaks_the_net),
	};

	alarm(100);
	setenv("WREATH_LOG", "off", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
