/* SPDX-License-Identifier: MIT */
/*
 * Goal: ranks of a host grant each other memory of GPUs where all of them reach
 * it, and only then; what is granted is told apart from what is of use; and a
 * peer that lies breaks the net, and nothing else.  Method: two ranks on the
 * simulated driver, in one process and in two, with slots that are mapped; and
 * tables of exports with bits turned over.
 */
#define _GNU_SOURCE
#include "test/unit/net_gpu.h"

#define BOTH (NET_PLACE_OUTPUT | NET_PLACE_INPUT)
#define BOTH_GPU (NET_PLACE_OUTPUT_GPU | NET_PLACE_INPUT_GPU)
#define OUTPUTS (NET_PLACE_OUTPUT | NET_PLACE_OUTPUT_GPU)

static int gpus[2];
static bool must_have;

static void *gpu_new(void)
{
	return (void *)(uintptr_t)kit_alloc(BYTES);
}

static void gpu_free(void *ptr)
{
	OK(CU(cuMemFree_v2)((uintptr_t)ptr));
}

/* What the log is to say, which goes to a file. */
static const char *reason;

static void agrees(void)
{
	char text[4096] = "";
	int fd = memfd_create("stderr", MFD_CLOEXEC);
	int old = dup(STDERR_FILENO);

	setenv("WREATH_LOG", "info", 1);
	CHECK(dup2(fd, STDERR_FILENO) >= 0);
	pair_open("auto", gpus);
	CHECK(dup2(old, STDERR_FILENO) >= 0);
	base_log_level_set(BASE_LOG_OFF);
	CHECK(pread(fd, text, sizeof(text) - 1, 0) >= 0);
	CHECK(reason ? !!strstr(text, reason)
		     : !strstr(text, "do not reach each other's"));
	close(fd);
	close(old);
	CHECK(nets[0]->has_ipc == must_have);
	CHECK(nets[1]->has_ipc == must_have);
	pair_close(gpus);
}

static void all_ranks_of_a_host_conclude_alike(void **unused)
{
	static const struct {
		const char *fake, *ipc;
		int gpus[2];
		bool must;
		const char *reason;
	} rows[] = {
		{"", "auto", {0, 0}, true, NULL},
		{"", "auto", {0, 1}, true, NULL},
		{"", "off", {0, 0}, false, NULL},
		{"", "auto", {-1, -1}, false, NULL},
		{"nopeer", "auto", {0, 0}, true, NULL},
		{"nopeer", "auto", {1, 1}, true, NULL},
		{"nopeer", "auto", {0, 1}, false,
		 "rank 0 (here, pid 1) has a GPU that does not reach"},
		{"", "auto", {0, -1}, false,
		 "rank 1 (here, pid 2) has no GPU in use yet"},
	};
	size_t i;

	(void)unused;
	for (i = 0; i < base_countof(rows); i++) {
		memcpy(gpus, rows[i].gpus, sizeof(gpus));
		must_have = rows[i].must;
		reason = rows[i].reason;
		setenv("WREATH_GPU_IPC", rows[i].ipc, 1);
		kit_case_once(rows[i].fake, agrees);
	}
	unsetenv("WREATH_GPU_IPC");
	memset(gpus, 0, sizeof(gpus));
}

static void grant(const struct net_granting *what, uint32_t signature)
{
	OK(net_place_grant(conns[1], what, signature));
	CHECK(take(conns[0], signature));
	CHECK(conns[0]->place_told == conns[1]->granted);
}

/* As where a program maps two allocations side by side. */
static void straddles(void)
{
	struct mem_where where[2];
	struct net_granting what;
	void *gpu;

	pair_open("auto", gpus);
	nets[0]->gpu = open_gpu(0, 4096);
	gpu = gpu_new();
	what = gpu_granting(gpu, gpu, where);
	what.output_bytes = where[0].bytes + 1;
	what.input = (char *)gpu - 1;
	grant(&what, 1);
	CHECK(!(conns[1]->granted & BOTH));
	what.output_bytes = where[0].bytes;
	what.input = gpu;
	grant(&what, 2);
	CHECK((conns[1]->granted & BOTH) == BOTH);
	mem_gpu_close(nets[0]->gpu);
	gpu_free(gpu);
	pair_close(gpus);
}

static void what_straddles_allocations_is_not_granted(void **unused)
{
	(void)unused;
	kit_case_once("", straddles);
}

/* Of one operation with memory of GPUs, another without, and so on. */
static void takes_turns(void)
{
	struct mem_where where[2];
	struct net_granting on_gpu, on_host = {.output_bytes = BYTES,
					       .input_bytes = BYTES,
					       .kinds = BOTH};
	struct net_conn *to = conns[0];
	void *gpu[2], *host[2];
	int i;

	pair_open("auto", gpus);
	to = conns[0];
	for (i = 0; i < 2; i++) {
		gpu[i] = gpu_new();
		OK(mem_alloc(BYTES, &host[i]));
	}
	on_gpu = gpu_granting(gpu[0], gpu[1], where);
	on_host.output = host[0];
	on_host.input = host[1];
	for (i = 0; i < 12; i += 4) {
		nets[0]->gpu = open_gpu(0, 4096);
		grant(&on_gpu, (uint32_t)i);
		CHECK(to->place_told == (BOTH | BOTH_GPU));
		CHECK(to->place.kinds == (BOTH | BOTH_GPU));
		/* Within a process the pointer itself serves. */
		CHECK(to->output_map == gpu[0] && to->input_map == gpu[1]);
		grant(&on_host, (uint32_t)i + 1);
		CHECK(to->place_told == BOTH && to->place.kinds == BOTH);
		CHECK(to->output_map && to->output_map != gpu[0]);
		memcpy(to->output_map + 100, "stored", 7);
		CHECK(!strcmp((char *)host[0] + 100, "stored"));
		/* The peer has a GPU, and we have none in the operation. */
		mem_gpu_close(nets[0]->gpu);
		nets[0]->gpu = NULL;
		grant(&on_gpu, (uint32_t)i + 2);
		CHECK(to->place_told == (BOTH | BOTH_GPU));
		CHECK(!to->place.kinds && !to->output_map && !to->input_map);
		grant(&on_host, (uint32_t)i + 3);
		CHECK(to->place.kinds == BOTH);
		CHECK(to->output_map && to->input_map);
	}
	on_gpu.is_mutual = false;
	grant(&on_gpu, 100);
	CHECK(!to->place_told && !to->place.kinds);
	for (i = 0; i < 2; i++) {
		gpu_free(gpu[i]);
		OK(mem_free(host[i]));
	}
	pair_close(gpus);
}

static void what_is_granted_is_told_apart_from_what_is_of_use(void **unused)
{
	(void)unused;
	gpu_case("", takes_turns);
}

static void take_one(struct net_conn *conn, enum net_place_kind kind,
		     uint32_t signature)
{
	uint64_t end = base_now_ns() + SECONDS * 1000000000ull;

	while (!net_place_take_one(conn, kind, signature)) {
		CHECK(base_now_ns() < end);
		OK(net_poll(nets[0]));
		OK(net_poll(nets[1]));
	}
}

static void one_by_one(void)
{
	struct mem_where where[2];
	struct net_granting what;
	struct net_conn *to;
	void *gpu[2];
	int i;

	pair_open("auto", gpus);
	to = conns[0];
	for (i = 0; i < 2; i++)
		gpu[i] = gpu_new();
	nets[0]->gpu = open_gpu(0, 4096);
	what = gpu_granting(gpu[0], gpu[1], where);
	OK(net_place_grant_one(conns[1], NET_PLACE_OUTPUT, &what, 1));
	CHECK(conns[1]->granted == OUTPUTS);
	OK(net_place_grant_one(conns[1], NET_PLACE_INPUT, &what, 1));
	CHECK(conns[1]->granted == (BOTH | BOTH_GPU));
	take_one(to, NET_PLACE_INPUT, 1);
	CHECK(to->place.kinds == (NET_PLACE_INPUT | NET_PLACE_INPUT_GPU));
	CHECK(to->input_map == gpu[1] && !to->output_map);
	take_one(to, NET_PLACE_OUTPUT, 1);
	CHECK(to->place.kinds == (BOTH | BOTH_GPU));
	CHECK(to->output_map == gpu[0] && to->input_map == gpu[1]);
	/* Of the next pair the output is nothing; the input stays. */
	what.is_mutual = false;
	OK(net_place_grant_one(conns[1], NET_PLACE_OUTPUT, &what, 3));
	CHECK(conns[1]->granted == (NET_PLACE_INPUT | NET_PLACE_INPUT_GPU));
	take_one(to, NET_PLACE_OUTPUT, 3);
	CHECK(to->place_told == (NET_PLACE_INPUT | NET_PLACE_INPUT_GPU));
	CHECK(to->place.kinds == to->place_told && !to->output_map);
	CHECK(to->input_map == gpu[1]);
	mem_gpu_close(nets[0]->gpu);
	for (i = 0; i < 2; i++)
		gpu_free(gpu[i]);
	pair_close(gpus);
}

static void messages_grants_are_told_apart_as_well(void **unused)
{
	(void)unused;
	gpu_case("", one_by_one);
}

#define N_MANY 30

/* An entry is used again only when nobody can be reading it. */
static void rotates(void)
{
	struct mem_where where[2];
	struct net_granting what;
	void *many[N_MANY];
	uint64_t state = seed_of_run();
	uint32_t n;
	int i;

	pair_open("auto", gpus);
	nets[0]->gpu = open_gpu(0, 4096);
	for (i = 0; i < N_MANY; i++)
		many[i] = gpu_new();
	for (n = 0; n < 400; n += 2) {
		void *picked[4];

		/* Two operations under way, as much as there can be. */
		for (i = 0; i < 4; i++)
			picked[i] = many[next_random(&state) % N_MANY];
		for (i = 0; i < 2; i++) {
			what = gpu_granting(picked[2 * i], picked[2 * i + 1],
					    where);
			OK(net_place_grant(conns[1], &what,
					   n + (uint32_t)i));
		}
		for (i = 0; i < 2; i++) {
			CHECK(take(conns[0], n + (uint32_t)i));
			CHECK(conns[0]->output_map == picked[2 * i]);
			CHECK(conns[0]->input_map == picked[2 * i + 1]);
		}
	}
	mem_gpu_close(nets[0]->gpu);
	for (i = 0; i < N_MANY; i++)
		gpu_free(many[i]);
	pair_close(gpus);
}

static void more_allocations_than_entries_take_turns(void **unused)
{
	(void)unused;
	gpu_case("", rotates);
}

static void not_exported(void)
{
	struct mem_where where[2];
	struct net_granting what;
	void *out;

	pair_open("auto", gpus);
	out = gpu_new();
	what = gpu_granting(out, out, where);
	grant(&what, 1);
	CHECK(!conns[1]->granted && !conns[0]->place.kinds);
	gpu_free(out);
	pair_close(gpus);
}

static void what_cannot_be_exported_is_not_granted(void **unused)
{
	(void)unused;
	gpu_case("noipc", not_exported);
}

/* A taker that cannot import says so, for both. */
static void not_imported(void)
{
	struct mem_where where[2];
	struct net_granting what;
	void *out;

	pair_open("auto", gpus);
	nets[0]->gpu = open_gpu(1, 4096);
	out = gpu_new();
	what = gpu_granting(out, NULL, where);
	/* As if GPU 0 and 1 had been thought to reach each other. */
	OK(net_place_grant(conns[1], &what, 1));
	CHECK(conns[1]->granted == OUTPUTS);
	CHECK(!take(conns[0], 1));
	CHECK(nets[0]->failed == WREATH_ENET);
	CHECK(tells("WREATH_GPU_IPC=off") && tells("rank 0") &&
	      tells("rank 1") && tells("does not reach"));
	mem_gpu_close(nets[0]->gpu);
	gpu_free(out);
	pair_close(gpus);
}

static void an_import_that_fails_names_both_and_the_remedy(void **unused)
{
	(void)unused;
	gpu_case("nopeer", not_imported);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_straddles_allocations_is_not_granted),
		cmocka_unit_test(all_ranks_of_a_host_conclude_alike),
		cmocka_unit_test(
			what_is_granted_is_told_apart_from_what_is_of_use),
		cmocka_unit_test(messages_grants_are_told_apart_as_well),
		cmocka_unit_test(more_allocations_than_entries_take_turns),
		cmocka_unit_test(what_cannot_be_exported_is_not_granted),
		cmocka_unit_test(
			an_import_that_fails_names_both_and_the_remedy),
	};

	alarm(100);
	setenv("WREATH_LOG", "off", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
