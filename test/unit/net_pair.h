/* SPDX-License-Identifier: MIT */
/*
 * For the tests of what mends connections: two ranks' nets in one thread over
 * the soft device, which is taken for another one, with completions; notes go
 * through queues here.
 */
#ifndef NET_PAIR_H
#define NET_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/inner.h"
#include "soft/soft.h"

#define N_NOTES 64
#define SECONDS 10

struct post {
	struct net_note notes[N_NOTES];
	size_t bytes[N_NOTES];
	uint32_t n_in, n_out;
	bool is_lost; /* as with a network that is away */
};

static struct base_env env;
static struct net *nets[2];
static struct net_conn *conns[2];
static struct post posts[2]; /* to each rank */
static char names[2][128] = {"rank 0 (here, pid 1)", "rank 1 (here, pid 1)"};
static int ranks[2] = {0, 1};
__attribute__((unused)) static uint64_t state;

__attribute__((unused)) static uint64_t draw(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static int put(int peer, const void *note, size_t bytes)
{
	struct post *post = &posts[peer];

	if (post->is_lost)
		return 0;
	assert_true(post->n_in - post->n_out < N_NOTES);
	assert_true(bytes <= sizeof(post->notes[0]));
	memcpy(&post->notes[post->n_in % N_NOTES], note, bytes);
	post->bytes[post->n_in++ % N_NOTES] = bytes;
	return 0;
}

static int send_note(void *arg, int peer, const void *note, size_t bytes)
{
	(void)arg;
	return put(peer, note, bytes);
}

static int ask(void *arg, int peer, const void *note, size_t bytes)
{
	const int *rank = arg;
	char reply[128];
	size_t n = net_answer(nets[peer], note, bytes, reply);

	return n ? put(*rank, reply, n) : 0;
}

static bool take_note(void *arg, int *peer, void *note, size_t size,
		      size_t *bytes)
{
	const int *rank = arg;
	struct post *post = &posts[*rank];
	uint32_t at = post->n_out % N_NOTES;

	if (post->n_in == post->n_out)
		return false;
	*peer = !*rank;
	*bytes = base_min_size(post->bytes[at], size);
	memcpy(note, &post->notes[at], *bytes);
	post->n_out++;
	return true;
}

static void agree(struct net *net, struct net *other)
{
	const uint32_t here[2] = {0, 0};
	char *offers = base_alloc(2, NET_OFFER_MAX);

	net_offer(net, offers + net->rank * NET_OFFER_MAX);
	net_offer(other, offers + other->rank * NET_OFFER_MAX);
	if (net_agree(net, offers, NET_OFFER_MAX, here, here))
		fail_msg("%s", wreath_error_text());
}

__attribute__((unused)) static int open_pair(void **unused)
{
	struct net_args args = {.env = &env, .all_local = true, .n_ranks = 2,
				.names = names};
	struct net_record records[2];
	int i;

	(void)unused;
	setenv("WREATH_SOFT", "roce:1", 1);
	setenv("WREATH_ARRIVAL", "completion", 1);
	setenv("WREATH_LOG", "off", 1);
	memset(posts, 0, sizeof(posts));
	assert_int_equal(base_env_load(&env), 0);
	assert_int_equal(soft_table(&args.soft), 0);
	for (i = 0; i < 2; i++) {
		const struct net_notes notes = {send_note, ask, take_note,
						&ranks[i]};

		args.rank = i;
		args.notes = &notes;
		assert_int_equal(net_open(&args, &nets[i]), 0);
	}
	for (i = 0; i < 2; i++) {
		agree(nets[i], nets[!i]);
		assert_int_equal(net_conn_new(nets[i], !i, 0, &records[i]), 0);
		conns[i] = net_conn(nets[i], !i, 0);
	}
	conns[0]->port->is_soft = false;
	conns[1]->port->is_soft = false;
	for (i = 0; i < 2; i++)
		assert_int_equal(net_conn_ready(nets[i], !i, 0, &records[!i]),
				 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(net_conn_reach(nets[i], !i, 0), 0);
		assert_non_null(conns[i]->mend);
	}
	return 0;
}

__attribute__((unused)) static int close_pair(void **unused)
{
	(void)unused;
	net_close(nets[0]);
	net_close(nets[1]);
	return 0;
}

__attribute__((unused)) static void poll_both(void)
{
	assert_int_equal(net_poll(nets[0]), 0);
	assert_int_equal(net_poll(nets[1]), 0);
}

__attribute__((unused)) static void poll_until_mended(void)
{
	uint64_t end = base_now_ns() + SECONDS * 1000000000ull;

	do {
		assert_true(base_now_ns() < end);
		poll_both();
	} while (conns[0]->is_mending || conns[1]->is_mending);
}

/* As the device does it when the port goes down. */
__attribute__((unused)) static void break_qp(int i)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (conns[i]->is_mending)
		return;
	assert_int_equal(verbs_qp_modify(conns[i]->port->device, conns[i]->qp,
					 &attr, IBV_QP_STATE), 0);
}

__attribute__((unused)) static void contains(const char *what)
{
	if (!strstr(wreath_error_text(), what))
		fail_msg("'%s' is not in '%s'", what, wreath_error_text());
}

__attribute__((unused)) static int poll_to_the_end(void)
{
	uint64_t end = base_now_ns() + SECONDS * 1000000000ull;
	int err;

	while (!(err = net_poll(nets[0])))
		assert_true(base_now_ns() < end);
	return err;
}

#endif
