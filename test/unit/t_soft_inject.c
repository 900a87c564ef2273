/* SPDX-License-Identifier: MIT */
/*
 * Goal: each clause of WREATH_SOFT_FAULTS does what its row says, once, and a
 * clause that cannot be read is named.  Method: faults on one end of a pair.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>

#include "soft/fault.h"
#include "soft_pair.h"

static int write_8(struct pair_end *end)
{
	struct pair_wr w;

	pair_wr_init(&w, end, IBV_WR_RDMA_WRITE, 0, 0, 8);
	return pair_post(end, &w);
}

static void expect_event(struct pair_end *end, enum ibv_event_type type)
{
	struct ibv_async_event event;

	assert_int_equal(end->verbs->get_async_event(end->context, &event), 0);
	assert_int_equal(event.event_type, type);
	if (type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_PORT_ACTIVE)
		assert_int_equal(event.element.port_num, 1);
	end->verbs->ack_async_event(&event);
}

static void clause_that_cannot_be_read_is_named(void **state)
{
	static const char *const bad[] = {
		"fail_post", "fail_post=", "fail_post=0", "fail_post=x",
		"fail_post=1x", "fail_post= 1", "fail_posts=1", "=", "nonsense",
		"status=3", "status=SUCCESS@1", "status=NO_SUCH@1",
		"status=RETRY_EXC_ERR@", "port_down=-1", "port_down=1:",
		"port_down=1:x", "chaos=-1", "promise=all", "promise",
		"fail_post=99999999999999999999", "delay=0",
	};
	struct soft_faults faults;
	char text[128];
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(bad); i++) {
		snprintf(text, sizeof(text), "fail_reg=1,%s", bad[i]);
		assert_int_equal(soft_faults_parse(text, &faults),
				 WREATH_EINVAL);
		snprintf(text, sizeof(text), "'%s'", bad[i]);
		assert_non_null(strstr(wreath_error_text(), text));
	}
	assert_int_equal(soft_faults_parse("", &faults), 0);
	assert_int_equal(soft_faults_parse("fail_post=3,status=RNR_RETRY_EXC_"
					   "ERR@7,port_down=5:9,chaos=0",
					   &faults), 0);
	assert_int_equal(faults.fail_post, 3);
	assert_int_equal(faults.status, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(faults.status_at, 7);
	assert_int_equal(faults.port_down_for_ms, 9);
	assert_int_equal(faults.chaos, 0);
	assert_int_equal(faults.fail_reg, -1);
	assert_int_equal(soft_faults_parse("status=IBV_WC_REM_OP_ERR@1",
					   &faults), 0);
}

static void every_clause_is_described(void **state)
{
	const char *help;
	int i;

	(void)state;
	for (i = 0; soft_fault_clause(i, &help); i++) {
		assert_non_null(strchr(soft_fault_clause(i, &help), '='));
		assert_true(strlen(help) > 20);
	}
	assert_true(i > 10);
	assert_null(soft_fault_clause(-1, &help));
}

static void nth_call_fails_and_only_that(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct ibv_mr *mr;
	struct ibv_cq *cq;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(soft_fault(a.context, "fail_post=2,fail_recv=1,"
					       "fail_reg=1,fail_cq=1"), 0);
	assert_int_equal(write_8(&a), 0);
	assert_int_equal(write_8(&a), ENOMEM);
	assert_int_equal(write_8(&a), 0);
	assert_int_equal(pair_post_recv(&a, 0, 0, 0), ENOMEM);
	assert_int_equal(pair_post_recv(&a, 0, 0, 0), 0);
	assert_null(a.verbs->reg_mr(a.pd, a.buf, 64, 0));
	assert_int_equal(errno, ENOMEM);
	mr = a.verbs->reg_mr(a.pd, a.buf, 64, 0);
	assert_non_null(mr);
	assert_int_equal(a.verbs->dereg_mr(mr), 0);
	assert_null(a.verbs->create_cq(a.context, 1, NULL, NULL, 0));
	cq = a.verbs->create_cq(a.context, 1, NULL, NULL, 0);
	assert_non_null(cq);
	assert_int_equal(a.verbs->destroy_cq(cq), 0);
	assert_int_equal(soft_fault(a.context, "fail_qp=1"), 0);
	assert_int_equal(a.verbs->destroy_qp(a.qp), 0);
	{
		struct ibv_qp_init_attr init = {.send_cq = a.cq,
						.recv_cq = a.cq,
						.qp_type = IBV_QPT_RC};

		assert_null(a.verbs->create_qp(a.pd, &init));
		a.qp = a.verbs->create_qp(a.pd, &init);
		assert_non_null(a.qp);
	}
	pair_close(&a, &b);
}

static void status_is_forced_on_the_nth_send(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(soft_fault(a.context, "status=REM_OP_ERR@2"), 0);
	assert_int_equal(write_8(&a), 0);
	assert_int_equal(write_8(&a), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	pair_expect(&a, 0, IBV_WC_REM_OP_ERR);
	assert_int_equal(pair_state(&a), IBV_QPS_ERR);
	pair_close(&a, &b);
}

static void queue_pair_fails_after_the_nth_send(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(pair_post_recv(&a, 3, 0, 0), 0);
	assert_int_equal(soft_fault(a.context, "qp_error=2"), 0);
	assert_int_equal(write_8(&a), 0);
	assert_int_equal(pair_state(&a), IBV_QPS_RTS);
	assert_int_equal(write_8(&a), 0);
	expect_event(&a, IBV_EVENT_QP_FATAL);
	assert_int_equal(pair_state(&a), IBV_QPS_ERR);
	pair_close(&a, &b);
}

static void port_that_is_down_is_silent_and_comes_back(void **state)
{
	struct pair_args args = {.timeout = 18}; /* 1 s, 4 tries */
	struct pair_end a, b;
	struct ibv_port_attr port;
	struct ibv_wc wc;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(write_8(&a), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_int_equal(soft_fault(b.context, "port_down=0:30"), 0);
	expect_event(&b, IBV_EVENT_PORT_ERR);
	assert_int_equal(b.verbs->query_port(b.context, 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_DOWN);
	/* Neither at once an error nor done: retried until it is up. */
	assert_int_equal(write_8(&a), 0);
	assert_int_equal(write_8(&b), 0);
	assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), 0);
	expect_event(&b, IBV_EVENT_PORT_ACTIVE);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	pair_expect(&b, 0, IBV_WC_SUCCESS);
	pair_close(&a, &b);
	/* For too long: the retries run out, and up does not mend that. */
	args.timeout = 8;
	pair_open(&a, &b, &args);
	assert_int_equal(soft_fault(a.context, "port_down=0"), 0);
	assert_int_equal(write_8(&a), 0);
	pair_expect(&a, 0, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(soft_fault(a.context, "port_up=1"), 0);
	expect_event(&a, IBV_EVENT_PORT_ERR);
	expect_event(&a, IBV_EVENT_PORT_ACTIVE);
	assert_int_equal(pair_state(&a), IBV_QPS_ERR);
	pair_close(&a, &b);
}

static void changed_gid_is_found_at_its_place(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	union ibv_gid gid, none = {{0}};

	(void)state;
	pair_end_open(&a, &args);
	pair_end_open(&b, &args);
	assert_int_equal(soft_fault(b.context, "gid_change=1"), 0);
	expect_event(&b, IBV_EVENT_GID_CHANGE);
	assert_int_equal(b.verbs->query_gid(b.context, 1, 0, &gid), 0);
	assert_memory_equal(&gid, &none, sizeof(gid));
	assert_int_equal(b.verbs->query_gid(b.context, 1, 1, &gid), 0);
	assert_memory_not_equal(&gid, &b.card.gid, sizeof(gid));
	/* The old address leads nowhere, the new one to it. */
	pair_connect(&a, &b.card, &args);
	assert_int_equal(write_8(&a), 0);
	pair_expect(&a, 0, IBV_WC_RETRY_EXC_ERR);
	pair_end_close(&a);
	pair_end_close(&b);
}

static void lost_device_refuses_and_flushes(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct ibv_device_attr attr;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(pair_post_recv(&a, 3, 0, 0), 0);
	assert_int_equal(soft_fault(a.context, "device_gone=2"), 0);
	assert_int_equal(write_8(&a), 0);
	assert_int_equal(write_8(&a), EIO);
	expect_event(&a, IBV_EVENT_DEVICE_FATAL);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	pair_expect(&a, 3, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(write_8(&a), EIO);
	assert_int_equal(a.verbs->query_device(a.context, &attr), EIO);
	assert_null(a.verbs->alloc_pd(a.context));
	assert_int_equal(pair_to(&a, IBV_QPS_RESET), EIO);
	/* Its peer finds silence. */
	assert_int_equal(write_8(&b), 0);
	pair_expect(&b, 0, IBV_WC_RETRY_EXC_ERR);
	/* Everything can still be put away. */
	pair_close(&a, &b);
}

static void delayed_send_takes_its_time(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	uint64_t start;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(soft_fault(a.context, "delay=20000"), 0);
	start = base_now_ns();
	assert_int_equal(write_8(&a), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_true(base_now_ns() - start >= 20000000u);
	pair_close(&a, &b);
}

static void locked_memory_has_a_limit(void **state)
{
	struct pair_args args = {0};
	struct pair_end a, b;
	struct ibv_mr *mr;

	(void)state;
	pair_open(&a, &b, &args);
	assert_int_equal(soft_fault(a.context, "memlock=70000"), 0);
	assert_null(a.verbs->reg_mr(a.pd, a.buf, 8192, 0));
	assert_int_equal(errno, ENOMEM);
	mr = a.verbs->reg_mr(a.pd, a.buf, 4096, 0);
	assert_non_null(mr);
	assert_int_equal(a.verbs->dereg_mr(mr), 0);
	pair_close(&a, &b);
}

static void faults_are_read_at_open(void **state)
{
	const struct verbs_table *table;
	struct pair_args args = {0};
	struct pair_end a, b;

	(void)state;
	setenv("WREATH_SOFT_FAULTS", "fail_post=1", 1);
	pair_open(&a, &b, &args);
	assert_int_equal(write_8(&a), ENOMEM);
	pair_close(&a, &b);
	setenv("WREATH_SOFT_FAULTS", "nonsense=1", 1);
	assert_int_equal(soft_table(&table), WREATH_EINVAL);
	setenv("WREATH_SOFT_FAULTS", "promise=none", 1);
	assert_int_equal(soft_table(&table), 0);
	assert_int_equal(table->promises, 0);
	unsetenv("WREATH_SOFT_FAULTS");
	assert_int_equal(soft_table(&table), 0);
	assert_int_equal(table->promises, VERBS_LINE_ORDER);
}

/* Every allocation in turn fails while a pair is made; then it works. */
static void no_memory_is_an_error_and_never_a_leak(void **state)
{
	struct ibv_device **list;
	const struct verbs_table *verbs;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap.max_send_wr = 4};
	bool is_done = false;
	int n;

	(void)state;
	assert_int_equal(soft_table(&verbs), 0);
	list = verbs->get_device_list(NULL);
	for (n = 1; n < 100 && !is_done; n++) {
		base_alloc_fail_at((uint64_t)n);
		context = verbs->open_device(list[0]);
		pd = context ? verbs->alloc_pd(context) : NULL;
		cq = pd ? verbs->create_cq(context, 8, NULL, NULL, 0) : NULL;
		init.send_cq = cq;
		init.recv_cq = cq;
		qp = cq ? verbs->create_qp(pd, &init) : NULL;
		is_done = qp != NULL;
		base_alloc_fail_at(0);
		if (qp)
			assert_int_equal(verbs->destroy_qp(qp), 0);
		if (cq)
			assert_int_equal(verbs->destroy_cq(cq), 0);
		if (pd)
			assert_int_equal(verbs->dealloc_pd(pd), 0);
		if (context)
			assert_int_equal(verbs->close_device(context), 0);
	}
	assert_true(is_done && n > 8);
	verbs->free_device_list(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clause_that_cannot_be_read_is_named),
		cmocka_unit_test(every_clause_is_described),
		cmocka_unit_test(nth_call_fails_and_only_that),
		cmocka_unit_test(status_is_forced_on_the_nth_send),
		cmocka_unit_test(queue_pair_fails_after_the_nth_send),
		cmocka_unit_test(port_that_is_down_is_silent_and_comes_back),
		cmocka_unit_test(changed_gid_is_found_at_its_place),
		cmocka_unit_test(lost_device_refuses_and_flushes),
		cmocka_unit_test(delayed_send_takes_its_time),
		cmocka_unit_test(locked_memory_has_a_limit),
		cmocka_unit_test(faults_are_read_at_open),
		cmocka_unit_test(no_memory_is_an_error_and_never_a_leak),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
