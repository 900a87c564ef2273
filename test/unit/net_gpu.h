/* SPDX-License-Identifier: MIT */
/*
 * For tests of memory of GPUs in net: two ranks' nets over the soft device and
 * the simulated driver, in one process, or each in one of two.
 */
#ifndef NET_GPU_TEST_H
#define NET_GPU_TEST_H

#include <dirent.h>
#include <sys/socket.h>

#include "net/reach.h"
#include "soft/soft.h"
#include "test/unit/mem_gpu.h"

#define SECONDS 10
#define BYTES ((size_t)300 << 10)

static struct base_env env;
static char names[2][128] = {"rank 0 (here, pid 1)", "rank 1 (here, pid 2)"};
static struct net *nets[2];
static struct net_conn *conns[2];

/* Of one rank, whose GPU is @gpu; -1: it has none. */
static KIT_UNUSED void end_open(int rank, int gpu)
{
	struct net_args args = {.env = &env, .all_local = true, .n_ranks = 2,
				.names = names, .rank = rank};
	struct CUctx_st *ctx = NULL;

	/* Retained once, and kept as programs do. */
	if (gpu >= 0)
		OK(CU(cuDevicePrimaryCtxRetain)(&ctx, gpu));
	OK(CU(cuCtxSetCurrent)(ctx));
	OK(base_env_load(&env));
	OK(soft_table(&args.soft));
	OK(net_open(&args, &nets[rank]));
}

static KIT_UNUSED void end_close(int rank, int gpu)
{
	net_close(nets[rank]);
	nets[rank] = NULL;
	if (gpu >= 0)
		OK(CU(cuDevicePrimaryCtxRelease_v2)(gpu));
}

static KIT_UNUSED void end_agree(int rank, const char *one, const char *other)
{
	const uint32_t here[2] = {0, 0};
	char *offers = base_alloc(2, NET_OFFER_MAX);

	memcpy(offers + rank * NET_OFFER_MAX, one, NET_OFFER_MAX);
	memcpy(offers + !rank * NET_OFFER_MAX, other, NET_OFFER_MAX);
	OK(net_agree(nets[rank], offers, NET_OFFER_MAX, here, here));
}

/* @arrival: "auto", where slots are mapped, or "completion". */
static KIT_UNUSED void pair_open(const char *arrival, const int gpus[2])
{
	const char *soft = getenv("NET_GPU_SOFT");
	static char offers[2][NET_OFFER_MAX];
	struct net_record records[2];
	int i;

	setenv("WREATH_SOFT", soft ? soft : "roce:1", 1);
	setenv("WREATH_ARRIVAL", arrival, 1);
	/* The first call of a process that uses CUDA. */
	OK(CU(cuInit)(0));
	for (i = 0; i < 2; i++) {
		end_open(i, gpus[i]);
		CHECK(net_offer(nets[i], offers[i]) <= NET_OFFER_MAX);
	}
	for (i = 0; i < 2; i++) {
		end_agree(i, offers[i], offers[!i]);
		OK(net_conn_new(nets[i], !i, 0, &records[i]));
	}
	for (i = 0; i < 2; i++)
		OK(net_conn_ready(nets[i], !i, 0, &records[!i]));
	for (i = 0; i < 2; i++) {
		OK(net_conn_reach(nets[i], !i, 0));
		conns[i] = net_conn(nets[i], !i, 0);
	}
}

static KIT_UNUSED void pair_close(const int gpus[2])
{
	int i;

	for (i = 0; i < 2; i++)
		end_close(i, gpus[i]);
	OK(CU(cuCtxSetCurrent)(NULL));
}

/* Until the grant is taken, or the taker's net is broken. */
static KIT_UNUSED bool take(struct net_conn *conn, uint32_t signature)
{
	uint64_t end = base_now_ns() + SECONDS * 1000000000ull;
	int i;

	while (!net_place_take(conn, signature)) {
		CHECK(base_now_ns() < end);
		for (i = 0; i < 2; i++)
			if (nets[i] && net_poll(nets[i]))
				return false;
	}
	return true;
}

static KIT_UNUSED void await(struct net_lane *to, uint32_t signature)
{
	uint64_t end = base_now_ns() + SECONDS * 1000000000ull;
	int i;

	while (net_arrived(to, signature) != NET_ARRIVED) {
		CHECK(base_now_ns() < end);
		for (i = 0; i < 2; i++)
			if (nets[i])
				OK(net_poll(nets[i]));
	}
}

/* What a granter of GPU memory tells: the whole of an allocation. */
static KIT_UNUSED struct net_granting gpu_granting(void *out, void *in,
						   struct mem_where where[2])
{
	struct net_granting what = {.output = out, .input = in,
				    .output_bytes = BYTES,
				    .input_bytes = BYTES, .is_mutual = true};

	if (out) {
		OK(mem_where(out, &where[0]));
		what.output_where = &where[0];
		what.kinds |= NET_PLACE_OUTPUT;
	}
	if (in) {
		OK(mem_where(in, &where[1]));
		what.input_where = &where[1];
		what.kinds |= NET_PLACE_INPUT;
	}
	return what;
}

static KIT_UNUSED int count_mrs(const struct net *net)
{
	const struct net_mr *mr;
	int n = 0;

	for (mr = net->mrs; mr; mr = mr->next)
		n += mr->gpu >= 0;
	return n;
}

static KIT_UNUSED int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static KIT_UNUSED void leave_nothing(void)
{
	struct fake_leaks leaks;

	CU(fakeCudaLeaks)(&leaks);
	CHECK(!leaks.imports && !leaks.registrations);
}

/* Like gpu_case(), of what differs the second time. */
static KIT_UNUSED void (*once_body)(void);

static KIT_UNUSED void once(void)
{
	once_body();
	leave_nothing();
	fflush(NULL);
	_exit(0);
}

static KIT_UNUSED void kit_case_once(const char *settings, void (*body)(void))
{
	once_body = body;
	assert_int_equal(kit_status(settings, once), 0);
}

static KIT_UNUSED uint64_t calls(const char *name)
{
	return CU(fakeCudaCalls)(name);
}

#endif
