/* SPDX-License-Identifier: MIT */
/*
 * Goal: a queue pair changes its state only as the specification allows, and
 * a refused change changes nothing.  Method: every pair of states, every
 * required attribute left out, every value just out of range.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "soft_pair.h"

#define TO_INIT                                                                \
	(IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define TO_RTR                                                                 \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |        \
	 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define TO_RTS                                                                 \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)

static struct pair_args args;

static int setup(void **state)
{
	struct pair_end *end = test_malloc(sizeof(*end));

	pair_end_open(end, &args);
	end->other = end->card;
	*state = end;
	return 0;
}

static int teardown(void **state)
{
	pair_end_close(*state);
	test_free(*state);
	return 0;
}

static struct ibv_qp_attr good(struct pair_end *end, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = {
		.qp_state = to,
		.port_num = 1,
		.qp_access_flags = PAIR_ACCESS,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = end->card.qpn,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 10,
		.retry_cnt = 3,
		.ah_attr = {.port_num = 1,
			    .dlid = end->card.lid,
			    .is_global = !end->card.lid,
			    .grh = {.dgid = end->card.gid, .hop_limit = 1}},
	};

	return attr;
}

static int change(struct pair_end *end, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = good(end, to);

	return end->verbs->modify_qp(end->qp, &attr, mask);
}

static enum ibv_qp_state state_of(struct pair_end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(end->verbs->query_qp(end->qp, &attr, IBV_QP_STATE,
					      &init), 0);
	assert_int_equal(attr.qp_state, end->qp->state);
	return attr.qp_state;
}

/* From RESET, by the right way. */
static void bring_to(struct pair_end *end, enum ibv_qp_state to)
{
	assert_int_equal(change(end, IBV_QPS_RESET, IBV_QP_STATE), 0);
	if (to == IBV_QPS_RESET)
		return;
	if (to == IBV_QPS_ERR) {
		assert_int_equal(change(end, to, IBV_QP_STATE), 0);
		return;
	}
	assert_int_equal(change(end, IBV_QPS_INIT, TO_INIT), 0);
	if (to >= IBV_QPS_RTR)
		assert_int_equal(change(end, IBV_QPS_RTR, TO_RTR), 0);
	if (to >= IBV_QPS_RTS)
		assert_int_equal(change(end, IBV_QPS_RTS, TO_RTS), 0);
	if (to == IBV_QPS_SQD)
		assert_int_equal(change(end, to, IBV_QP_STATE), 0);
}

static int right_mask(enum ibv_qp_state to)
{
	return to == IBV_QPS_INIT  ? TO_INIT
	       : to == IBV_QPS_RTR ? TO_RTR
	       : to == IBV_QPS_RTS ? TO_RTS
				   : IBV_QP_STATE;
}

static void only_the_right_ways_between_states_are_open(void **state)
{
	static const struct {
		enum ibv_qp_state from, to;
	} open[] = {
		{IBV_QPS_RESET, IBV_QPS_INIT}, {IBV_QPS_INIT, IBV_QPS_INIT},
		{IBV_QPS_INIT, IBV_QPS_RTR},   {IBV_QPS_RTR, IBV_QPS_RTS},
		{IBV_QPS_RTS, IBV_QPS_SQD},    {IBV_QPS_SQD, IBV_QPS_SQD},
	};
	static const enum ibv_qp_state states[] = {
		IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
		IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_ERR,
	};
	size_t i, j, k;

	for (i = 0; i < base_countof(states); i++) {
		for (j = 0; j < base_countof(states); j++) {
			enum ibv_qp_state from = states[i], to = states[j];
			bool is_open = to == IBV_QPS_RESET || to == IBV_QPS_ERR;
			int ret;

			for (k = 0; k < base_countof(open); k++)
				is_open |= open[k].from == from &&
					   open[k].to == to;
			bring_to(*state, from);
			ret = change(*state, to, right_mask(to));
			assert_int_equal(ret, is_open ? 0 : EINVAL);
			assert_int_equal(state_of(*state), is_open ? to : from);
		}
	}
	/* These ask for less than the way from before. */
	bring_to(*state, IBV_QPS_RTS);
	assert_int_equal(change(*state, IBV_QPS_RTS, IBV_QP_STATE), 0);
	bring_to(*state, IBV_QPS_SQD);
	assert_int_equal(change(*state, IBV_QPS_RTS, IBV_QP_STATE), 0);
	assert_int_equal(state_of(*state), IBV_QPS_RTS);
}

static void every_required_attribute_is_required(void **state)
{
	static const struct {
		enum ibv_qp_state from, to;
		int mask;
	} ways[] = {
		{IBV_QPS_RESET, IBV_QPS_INIT, TO_INIT},
		{IBV_QPS_INIT, IBV_QPS_RTR, TO_RTR},
		{IBV_QPS_RTR, IBV_QPS_RTS, TO_RTS},
	};
	size_t i;
	int bit;

	for (i = 0; i < base_countof(ways); i++) {
		bring_to(*state, ways[i].from);
		for (bit = 1; bit <= 1 << 20; bit <<= 1) {
			if (!(ways[i].mask & bit) || bit == IBV_QP_STATE)
				continue;
			assert_int_equal(change(*state, ways[i].to,
						ways[i].mask & ~bit), EINVAL);
			assert_int_equal(state_of(*state), ways[i].from);
		}
		/* And what has no place there is refused. */
		assert_int_equal(change(*state, ways[i].to,
					ways[i].mask | IBV_QP_QKEY), EINVAL);
		assert_int_equal(change(*state, ways[i].to, ways[i].mask), 0);
	}
}

static void refuse(struct pair_end *end, struct ibv_qp_attr attr, int mask)
{
	enum ibv_qp_state before = state_of(end);

	assert_int_equal(end->verbs->modify_qp(end->qp, &attr, mask), EINVAL);
	assert_int_equal(state_of(end), before);
}

static void values_out_of_range_are_refused(void **state)
{
	struct pair_end *end = *state;
	struct ibv_qp_attr attr;

	attr = good(end, IBV_QPS_INIT);
	attr.port_num = 2;
	refuse(end, attr, TO_INIT);
	attr = good(end, IBV_QPS_INIT);
	attr.pkey_index = 1;
	refuse(end, attr, TO_INIT);
	attr = good(end, IBV_QPS_INIT);
	attr.qp_access_flags = 1u << 30;
	refuse(end, attr, TO_INIT);
	bring_to(end, IBV_QPS_INIT);
	attr = good(end, IBV_QPS_RTR);
	attr.path_mtu = IBV_MTU_4096 + 1;
	refuse(end, attr, TO_RTR);
	attr.path_mtu = 0;
	refuse(end, attr, TO_RTR);
	attr = good(end, IBV_QPS_RTR);
	attr.dest_qp_num = 1 << 24;
	refuse(end, attr, TO_RTR);
	attr = good(end, IBV_QPS_RTR);
	attr.max_dest_rd_atomic = 17;
	refuse(end, attr, TO_RTR);
	attr = good(end, IBV_QPS_RTR);
	attr.min_rnr_timer = 32;
	refuse(end, attr, TO_RTR);
	bring_to(end, IBV_QPS_RTR);
	attr = good(end, IBV_QPS_RTS);
	attr.timeout = 32;
	refuse(end, attr, TO_RTS);
	attr = good(end, IBV_QPS_RTS);
	attr.retry_cnt = 8;
	refuse(end, attr, TO_RTS);
	attr = good(end, IBV_QPS_RTS);
	attr.rnr_retry = 8;
	refuse(end, attr, TO_RTS);
	attr = good(end, IBV_QPS_RTS);
	attr.max_rd_atomic = 17;
	refuse(end, attr, TO_RTS);
	attr = good(end, IBV_QPS_RTS);
	attr.cur_qp_state = IBV_QPS_INIT;
	refuse(end, attr, TO_RTS | IBV_QP_CUR_STATE);
}

static void addresses_are_those_of_the_link_layer(void **state)
{
	struct pair_end *end = *state;
	struct ibv_qp_attr attr;
	struct ibv_ah *ah;

	bring_to(end, IBV_QPS_INIT);
	attr = good(end, IBV_QPS_RTR);
	attr.ah_attr.port_num = 2;
	refuse(end, attr, TO_RTR);
	attr = good(end, IBV_QPS_RTR);
	if (end->card.lid) {
		attr.ah_attr.dlid = 0;
		refuse(end, attr, TO_RTR);
		attr.ah_attr.dlid = 0xc000; /* multicast */
		refuse(end, attr, TO_RTR);
		attr = good(end, IBV_QPS_RTR);
		attr.ah_attr.is_global = 1; /* allowed, not needed */
	} else {
		attr.ah_attr.is_global = 0;
		refuse(end, attr, TO_RTR);
		attr = good(end, IBV_QPS_RTR);
		attr.ah_attr.grh.sgid_index = 1; /* empty */
		refuse(end, attr, TO_RTR);
		attr = good(end, IBV_QPS_RTR);
		attr.ah_attr.grh.hop_limit = 0;
		refuse(end, attr, TO_RTR);
		attr = good(end, IBV_QPS_RTR);
		ah = end->verbs->create_ah(end->pd, &attr.ah_attr);
		assert_non_null(ah);
		assert_int_equal(end->verbs->destroy_ah(ah), 0);
		attr.ah_attr.is_global = 0;
		assert_null(end->verbs->create_ah(end->pd, &attr.ah_attr));
		attr.ah_attr.is_global = 1;
	}
	assert_int_equal(end->verbs->modify_qp(end->qp, &attr, TO_RTR), 0);
}

static void query_tells_what_was_set(void **state)
{
	struct pair_end *end = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	bring_to(end, IBV_QPS_RTS);
	assert_int_equal(end->verbs->query_qp(end->qp, &attr, ~0, &init), 0);
	assert_int_equal(attr.dest_qp_num, end->card.qpn);
	assert_int_equal(attr.path_mtu, IBV_MTU_1024);
	assert_int_equal(attr.timeout, 10);
	assert_int_equal(attr.qp_access_flags, PAIR_ACCESS);
	assert_int_equal(attr.cur_qp_state, IBV_QPS_RTS);
	assert_ptr_equal(init.send_cq, end->cq);
	assert_true(init.cap.max_send_wr >= 64);
	bring_to(end, IBV_QPS_RESET);
	assert_int_equal(end->verbs->query_qp(end->qp, &attr, ~0, &init), 0);
	assert_int_equal(attr.dest_qp_num, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			only_the_right_ways_between_states_are_open, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			every_required_attribute_is_required, setup, teardown),
		cmocka_unit_test_setup_teardown(values_out_of_range_are_refused,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			addresses_are_those_of_the_link_layer, setup, teardown),
		cmocka_unit_test_setup_teardown(query_tells_what_was_set, setup,
						teardown),
	};
	int failed;

	setenv("WREATH_SOFT", "roce:1,ib:1", 1);
	alarm(60);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	args.device = 1;
	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
