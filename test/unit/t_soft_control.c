/* SPDX-License-Identifier: MIT */
/*
 * Goal: nothing that a peer writes or says can make a context crash, hang or
 * reach beyond its memory.  Method: rubbish on its socket, and rubbish in
 * every shared word while requests are posted.  SEED=n reruns.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>

#include "soft/peer.h"
#include "soft/qp.h"
#include "soft_pair.h"

static int dial(struct pair_end *end)
{
	struct soft_context *c = soft_context_of(end->context);
	struct sockaddr_un name;
	socklen_t n = soft_address_name(&c->address, &name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct timeval limit = {.tv_sec = 5};

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	assert_int_equal(connect(fd, (struct sockaddr *)&name, n), 0);
	return fd;
}

static void pair_still_works(struct pair_end *a, struct pair_end *b)
{
	struct pair_wr w;

	a->buf[0]++;
	pair_wr_init(&w, a, IBV_WR_RDMA_WRITE, 0, 0, 8);
	assert_int_equal(pair_post(a, &w), 0);
	pair_expect(a, 0, IBV_WC_SUCCESS);
	assert_int_equal(a->buf[0], b->buf[0]);
}

static void rubbish_on_the_socket_ends_only_itself(void **state)
{
	static const size_t sizes[] = {1, 4, 23, 24, 48, 64, 4096};
	static unsigned char rubbish[4096];
	struct pair_args args = {0};
	struct pair_end a, b;
	size_t i;
	char byte;
	int fd;

	(void)state;
	pair_open(&a, &b, &args);
	memset(rubbish, 0xc3, sizeof(rubbish));
	for (i = 0; i < base_countof(sizes); i++) {
		fd = dial(&b);
		assert_int_equal(send(fd, rubbish, sizes[i], MSG_NOSIGNAL),
				 (ssize_t)sizes[i]);
		/* It hangs up. */
		assert_true(recv(fd, &byte, 1, 0) <= 0);
		close(fd);
	}
	pair_still_works(&a, &b);
	pair_close(&a, &b);
}

static void messages_with_wrong_numbers_are_harmless(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	unsigned int type, i;
	static unsigned char payload[SOFT_PAYLOAD];
	unsigned int seed = 1;
	int fd;

	(void)state;
	pair_open(&a, &b, &args);
	for (type = 0; type < 11; type++) {
		for (i = 0; i < 20; i++) {
			struct soft_message m = {.type = type};
			struct soft_message answer;
			size_t n;
			int got;

			m.a = (uint64_t)rand_r(&seed) << 33;
			m.b = (uint64_t)rand_r(&seed);
			m.key = i & 1 ? b.mr->rkey : (uint32_t)rand_r(&seed);
			m.need = (uint32_t)rand_r(&seed);
			m.bytes = i & 2 ? SOFT_PAYLOAD
					: (uint32_t)rand_r(&seed);
			m.slot = (uint32_t)rand_r(&seed);
			fd = dial(&b);
			assert_int_equal(soft_payload_send(fd, &m, payload,
							   i & 4 ? 100 : 0), 0);
			shutdown(fd, SHUT_WR);
			if (!soft_message_recv(fd, &answer, &got, payload,
					       &n) && got >= 0)
				close(got);
			close(fd);
		}
	}
	pair_still_works(&a, &b);
	pair_close(&a, &b);
}

/* Fill what a peer may write of @seg with random words. */
static void scribble(struct soft_segment *seg, struct pair_end *end,
		     unsigned int *seed)
{
	uint32_t slot = end->qp->qp_num % SOFT_N_QP;
	struct soft_shared_qp *qp = &seg->qps[slot];
	_Atomic uint32_t *words = (_Atomic uint32_t *)(void *)qp;
	size_t i;

	for (i = 0; i < 17; i++) {
		/* Not the lock, which would only make us wait. */
		if (rand_r(seed) & 1)
			atomic_store(&words[i], (uint32_t)rand_r(seed));
	}
	words = (_Atomic uint32_t *)(void *)&seg->mrs[end->mr->rkey >>
						      SOFT_KEY_SHIFT];
	for (i = 4; i < 16; i++) {
		if (rand_r(seed) & 1)
			atomic_store(&words[i], (uint32_t)rand_r(seed));
	}
	words = (_Atomic uint32_t *)(void *)seg->rings;
	for (i = 0; i < 4096; i++)
		atomic_store(&words[i], (uint32_t)rand_r(seed));
}

/* Half of the time its receives are shared, by a queue that may make sense. */
static void scribble_shared(struct soft_segment *seg,
			    struct soft_shared_qp *qp, unsigned int *seed)
{
	uint32_t slot = (uint32_t)rand_r(seed) % SOFT_N_SRQ;
	struct soft_shared_srq *srq = &seg->srqs[slot];

	atomic_store(&qp->srq, rand_r(seed) & 1 ? slot + 1 : 0);
	atomic_store(&qp->rq_more, (uint32_t)rand_r(seed) % 256 * BASE_LINE);
	atomic_store(&srq->base, (uint32_t)rand_r(seed) % 256 * BASE_LINE);
	atomic_store(&srq->slots, 1u << rand_r(seed) % 16);
	atomic_store(&srq->sges, (uint32_t)rand_r(seed) % 18);
	atomic_store(&srq->pd, (uint32_t)rand_r(seed) % 4);
	atomic_store(&srq->limit, (uint32_t)rand_r(seed));
	atomic_store(&srq->head, (uint32_t)rand_r(seed));
	atomic_store(&srq->tail, atomic_load(&srq->head) +
					 (uint32_t)rand_r(seed) % 4);
	/* One that can be taken, in the first slot or another. */
	atomic_store((_Atomic uint64_t *)(void *)(seg->rings +
						  atomic_load(&srq->base)),
		     (uint64_t)atomic_load(&srq->head) << 32);
}

static void idle(struct pair_end *b, int socket)
{
	pair_meet(socket);
	pair_meet(socket);
	(void)b;
}

static void rubbish_in_shared_words_stays_within_bounds(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct pair_args args = {.timeout = 1, .retry_cnt = 1};
	struct pair_end a, far;
	struct pair_wr w;
	struct ibv_wc wc;
	struct soft_qp *qp;
	unsigned int seed;
	const char *text = getenv("SEED");
	int i, socket;
	pid_t pid;

	(void)state;
	seed = text ? (unsigned int)strtoul(text, NULL, 10)
		    : (unsigned int)base_now_ns() % 100000;
	printf("SEED=%u\n", seed);
	pid = pair_fork(&a, &socket, &args, idle);
	pair_meet(socket);
	far = a;
	qp = (struct soft_qp *)(void *)a.qp;
	for (i = 0; i < 2000; i++) {
		struct ibv_qp far_qp = {.qp_num = a.other.qpn};
		struct ibv_mr far_mr = {.rkey = a.other.rkey};

		far.qp = &far_qp;
		far.mr = &far_mr;
		scribble(qp->peer->seg, &far, &seed);
		/* So that it is let in now and then. */
		atomic_store(&qp->peer_qp->dest_id, qp->context->id);
		atomic_store(&qp->peer_qp->qpn, a.other.qpn);
		atomic_store(&qp->peer_qp->dest_qpn, a.qp->qp_num);
		atomic_store(&qp->peer_qp->rq_psn, a.card.psn);
		atomic_store(&qp->peer_qp->type, IBV_QPT_RC);
		scribble_shared(qp->peer->seg, qp->peer_qp, &seed);
		atomic_store(&qp->peer_qp->accept,
			     (uint64_t)rand_r(&seed) << 32 | 0x1ff);
		pair_wr_init(&w, &a, opcodes[i % 5], 0,
			     (size_t)rand_r(&seed) % PAIR_BYTES, 64);
		pair_post(&a, &w);
		while (ibv_poll_cq(a.cq, 1, &wc) == 1)
			;
		if (pair_state(&a) == IBV_QPS_ERR) {
			assert_int_equal(pair_to(&a, IBV_QPS_RESET), 0);
			pair_connect(&a, &a.other, &args);
		}
	}
	pair_meet(socket);
	pair_end_close(&a);
	/* The child's own words are spoilt: it only has to end. */
	waitpid(pid, &i, 0);
	assert_true(WIFEXITED(i));
}

static void polling_survives_rubbish_in_our_own_words(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	unsigned int seed = 7;
	struct ibv_wc wc;
	int i;

	(void)state;
	pair_open(&a, &b, &args);
	for (i = 0; i < 500; i++) {
		scribble(soft_context_of(b.context)->seg, &b, &seed);
		ibv_poll_cq(b.cq, 1, &wc);
		pair_post_recv(&b, 0, 0, 0);
	}
	pair_close(&a, &b);
}

/* A queue pair that was reset has another life, of which its peer's notes about
 * the one before say nothing. */
static void a_note_of_another_life_is_not_heard(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct soft_qp *qp;
	uint32_t epoch;

	(void)state;
	pair_open(&a, &b, &args);
	qp = (struct soft_qp *)(void *)b.qp;
	epoch = qp->epoch;
	assert_int_equal(pair_to(&a, IBV_QPS_RESET), 0);
	assert_int_equal(pair_to(&b, IBV_QPS_RESET), 0);
	assert_int_equal(pair_to_init(&b, &args), 0);
	soft_note_take(soft_context_of(b.context), qp->slot, epoch,
		       SOFT_NOTE_ERROR);
	assert_int_equal(pair_state(&b), IBV_QPS_INIT);
	pair_connect(&a, &b.card, &args);
	assert_int_equal(pair_to_rtr(&b, &args), 0);
	assert_int_equal(pair_to_rts(&b, &args), 0);
	pair_still_works(&a, &b);
	/* Of this life it is. */
	soft_note_take(soft_context_of(b.context), qp->slot, qp->epoch,
		       SOFT_NOTE_ERROR);
	assert_int_equal(pair_state(&b), IBV_QPS_ERR);
	pair_close(&a, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rubbish_in_shared_words_stays_within_bounds),
		cmocka_unit_test(rubbish_on_the_socket_ends_only_itself),
		cmocka_unit_test(messages_with_wrong_numbers_are_harmless),
		cmocka_unit_test(polling_survives_rubbish_in_our_own_words),
		cmocka_unit_test(a_note_of_another_life_is_not_heard),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
