/* SPDX-License-Identifier: MIT */
/*
 * Goal: every completion status becomes a sentence that names both ends, what
 * happened, and what to check.
 * Method: a connection made by hand, each status in turn, both link layers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "net/inner.h"

static char names[2][128] = {"rank 0 (hosta, pid 10)", "rank 1 (hostb, pid 11)"};
static struct net net = {.rank = 0, .n_ranks = 2, .names = names};
/* A device that has nothing to report. */
static struct ibv_context context = {.async_fd = -1};
static struct verbs_device device = {.context = &context};
static struct net_port port = {.device = &device, .text = "soft0:1 RoCEv2 fe80::1"};
static struct net_conn conn = {.net = &net, .port = &port, .peer = 1};

static int decode(enum ibv_wc_status status)
{
	/* Everything but these four fields is undefined in an error. */
	struct ibv_wc wc;

	memset(&wc, 0x5a, sizeof(wc));
	wc.status = status;
	wc.qp_num = 0x123;
	wc.vendor_err = 0x77;
	wc.wr_id = 1;
	return net_completion_error(&conn, &wc);
}

static void contains(const char *what)
{
	const char *text = wreath_error_text();

	if (!strstr(text, what))
		print_message("'%s' is not in '%s'\n", what, text);
	assert_non_null(strstr(text, what));
}

static void every_status_names_both_ends_and_a_check(void **state)
{
	enum ibv_wc_status status;

	(void)state;
	conn.other.qpn = 0x456;
	port.attr.link_layer = IBV_LINK_LAYER_ETHERNET;
	conn.gid.raw[0] = 0xfe;
	conn.gid.raw[1] = 0x80;
	conn.gid.raw[15] = 1;
	conn.other_gid = conn.gid;
	conn.other_gid.raw[15] = 2;
	for (status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_GENERAL_ERR;
	     status++) {
		int err = decode(status);

		assert_true(err == WREATH_ENET || err == WREATH_EDEVICE);
		contains(names[0]);
		contains(names[1]);
		contains("soft0:1");
		contains("GID fe80::1 to GID fe80::2");
		contains("QP 0x123 to QP 0x456");
		contains("vendor error 0x77");
		contains(verbs_wc_name(status));
		contains("it never worked");
	}
}

static void an_unknown_status_still_makes_a_sentence(void **state)
{
	(void)state;
	assert_int_equal(decode((enum ibv_wc_status)9999), WREATH_ENET);
	contains(names[1]);
}

static void work_done_before_is_told(void **state)
{
	(void)state;
	conn.bytes_sent = 4096;
	conn.n_posted = 7;
	decode(IBV_WC_RETRY_EXC_ERR);
	contains("it had worked for 7 messages and 4096 bytes");
	contains("did not answer");
	conn.bytes_sent = 0;
	conn.n_posted = 0;
}

static void infiniband_ends_are_lids(void **state)
{
	(void)state;
	port.attr.link_layer = IBV_LINK_LAYER_INFINIBAND;
	conn.local.lid = 3;
	conn.other.lid = 4;
	decode(IBV_WC_RNR_RETRY_EXC_ERR);
	contains("LID 3 to LID 4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_status_names_both_ends_and_a_check),
		cmocka_unit_test(an_unknown_status_still_makes_a_sentence),
		cmocka_unit_test(work_done_before_is_told),
		cmocka_unit_test(infiniband_ends_are_lids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
