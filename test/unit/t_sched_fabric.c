/* SPDX-License-Identifier: MIT */
/*
 * Goal: a fabric's text is understood or refused, never misread, and the links
 * are those that it describes.
 * Method: sentences that are right; sentences that are wrong, each with the
 * place and the reason; and texts spoilt by chance.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_kit.h"
#include "sched/sim_net.h"

static const char good[] =
	"# a comment, and an empty line\n"
	"\n"
	"nodes 128\n"
	"\tranks_per_node 8   # a comment behind\r\n"
	"rail 400G 2us\n"
	"rail 12.5GB/s, 1500ns\n"
	"nvlink 450GB/s 0.7us\n"
	"topology spine-leaf leaf 16 oversubscription 4\n"
	"routing hash\n"
	"switch 300ns\n"
	"ports per_rank\n"
	"overhead 0.5us\n"
	"reduce 40GB/s\n"
	"copy free\n"
	"slot_bytes 128K\n"
	"slots 8\n"
	"slow link node 3 rail 1 rate 50G\n"
	"lost link leaf 2 rail 0 up 1";

static void a_text_says_what_it_says(void **state)
{
	struct sched_fabric fabric;

	(void)state;
	sched_fabric_init(&fabric);
	assert_int_equal(sched_fabric_read(&fabric, "text", good), 0);
	assert_int_equal(sched_fabric_check(&fabric, NULL), 0);
	assert_int_equal(fabric.n_nodes, 128);
	assert_int_equal(fabric.n_ranks, 1024);
	assert_int_equal(fabric.n_rails, 2);
	assert_int_equal(fabric.rails[0].rate, 50000000000);
	assert_int_equal(fabric.rails[0].latency_ps, 2000000);
	assert_int_equal(fabric.rails[1].rate, 12500000000);
	assert_int_equal(fabric.rails[1].latency_ps, 1500000);
	assert_int_equal(fabric.in_node.rate, 450000000000);
	assert_int_equal(fabric.in_node.latency_ps, 700000);
	assert_int_equal(fabric.topology, SCHED_SPINE_LEAF);
	assert_int_equal(fabric.leaf, 16);
	assert_int_equal(fabric.oversubscription, 4);
	assert_int_equal(fabric.routing, SCHED_HASH);
	assert_true(fabric.is_per_rank);
	assert_int_equal(fabric.switch_ps, 300000);
	assert_int_equal(fabric.overhead_ps, 500000);
	assert_int_equal(fabric.reduce_rate, 40000000000);
	assert_int_equal(fabric.copy_rate, 0);
	assert_int_equal(fabric.slot_bytes, 131072);
	assert_int_equal(fabric.n_slots, 8);
	assert_int_equal(fabric.n_faults, 2);
	assert_false(fabric.faults[0].is_up);
	assert_int_equal(fabric.faults[0].rate, 6250000000);
	assert_true(fabric.faults[1].is_up && fabric.faults[1].is_lost);
	assert_int_equal(fabric.faults[1].up, 1);
}

static void a_wrong_text_is_refused_where_it_is_wrong(void **state)
{
	static const char *const wrong[][2] = {
		{"nodse 4", "f:1:1: 'nodse' is no statement; did you mean "
			    "nodes?"},
		{"\n\n  bananas 4", "f:3:3: 'bananas' is no statement; "
				    "expected one of: nodes"},
		{"nodes 0", "f:1:7: nodes '0' is not a whole number from 1 to "
			    "16384"},
		{"nodes", "f:1:6: expected nodes, a whole number from 1"},
		{"nodes 4 4", "f:1:9: '4' is more than nodes takes"},
		{"nodes 99999999999999999999", "f:1:7: nodes '9999"},
		{"nodes 4x", "f:1:7: nodes '4x' is not a whole number"},
		{"ranks 16385", "f:1:7: ranks '16385' is not a whole number "
				"from 1 to 16384"},
		{"rail 0 2us", "f:1:6: the rate '0' is 0: nothing would "
			       "ever arrive"},
		{"rail 400X 2us", "f:1:6: the rate '400X' is not a rate"},
		{"rail -4G 2us", "f:1:6: the rate '-4G' is not a rate"},
		{"rail 400G", "f:1:10: expected the latency, such as 2us"},
		{"rail 400G -2us", "f:1:11: the latency '-2us' is negative"},
		{"rail 400G 2", "f:1:11: the latency '2' is not a time"},
		{"rail 400G 11s", "f:1:11: the latency '11s' is not a time"},
		{"rail 1K 1us", "f:1:6: the rate '1K' is not a rate from 1KB/s"},
		{"rail 1G 1us\nrail 1G 1us\nrail 1G 1us\nrail 1G 1us\n"
		 "rail 1G 1us", "f:5:5: more than 4 rails"},
		{"topology fat-three radix 4", "f:1:10: 'fat-three' is no "
					       "topology; did you mean "
					       "fat-tree?"},
		{"topology spine-leaf 16", "f:1:21: '16' is no word here; "
					   "expected one of: leaf"},
		{"topology spine-leaf leaf 16 oversubscribed 2",
		 "f:1:29: 'oversubscribed' is no word here; did you mean "
		 "oversubscription?"},
		{"topology flat leaf", "f:1:15: 'leaf' is more than topology "
				       "takes"},
		{"slow link node 3 rail 1", "f:1:24: expected word here, one "
					    "of: rate"},
		{"slow node 3", "f:1:6: 'node' is no word here"},
		{"lost link lead 3", "f:1:11: 'lead' is no end of a link; did "
				     "you mean leaf?"},
		{"routing random", "f:1:9: 'random' is no routing; expected "
				   "one of: modulo hash"},
		{"slot_bytes 100", "f:1:12: expected slot_bytes, a size from "
				   "64"},
		{"slots 9", "f:1:7: slots '9' is not a whole number from 2 to "
			    "8"},
		{"reduce fast", "f:1:8: the rate 'fast' is not a rate"},
		{"\x01\xff\x7f", "f:1:1: '?" "?" "?' is no statement"},
	};
	struct sched_fabric fabric;
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(wrong); i++) {
		sched_fabric_init(&fabric);
		assert_int_equal(sched_fabric_read(&fabric, "f", wrong[i][0]),
				 WREATH_EINVAL);
		if (strncmp(base_error_text(), wrong[i][1],
			    strlen(wrong[i][1])))
			fail_msg("'%s' is refused by '%s', not by '%s'",
				 wrong[i][0], base_error_text(), wrong[i][1]);
	}
}

/* Every word can be read, but it makes no sense. */
static void a_fabric_without_sense_is_refused(void **state)
{
	static const char *const senseless[][2] = {
		{"nodes 4\nranks_per_node 2", "4 nodes, and no rail between"},
		{"nodes 1\nranks_per_node 2", "nothing between them"},
		{"nodes 4\nranks 2\nrail 1G 1us", "4 nodes for 2 ranks"},
		{"nodes 4\nranks 2\nranks_per_node 3\nrail 1G 1us",
		 "2 ranks are not 4 nodes of 3"},
		{"nodes 4096\nranks_per_node 8\nrail 1G 1us",
		 "32768 ranks, more than 16384"},
		{"nodes 4\nrail 1G 1us\ntopology spine-leaf leaf 5",
		 "a leaf of 5 nodes is larger than all 4"},
		{"ranks 4\nnvlink 1G 1us\ntopology spine-leaf leaf 1",
		 "no rail that goes to them"},
		{"nodes 4\nrail 1G 1us\ntopology fat-tree radix 4 "
		 "oversubscription 4", "cannot have 4 times as many ways"},
		{"nodes 4\nrail 1G 1us\nlost link node 4 rail 0",
		 "line 3, column 11: there is no node 4"},
		{"nodes 4\nrail 1G 1us\nslow link node 3 rail 1 rate 1G",
		 "there is no rail 1"},
		{"nodes 4\nrail 1G 1us\nlost link node 3 rail 0",
		 "cuts node 3 off"},
		{"nodes 4\nrail 1G 1us\nlost link leaf 0 rail 0 up 0",
		 "a flat fabric has no leaves"},
	};
	struct sched_fabric fabric;
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(senseless); i++) {
		sched_fabric_init(&fabric);
		assert_int_equal(sched_fabric_read(&fabric, "f",
						   senseless[i][0]), 0);
		assert_int_equal(sched_fabric_check(&fabric, NULL),
				 WREATH_EINVAL);
		if (!strstr(base_error_text(), senseless[i][1]))
			fail_msg("refused by '%s', not by '%s'",
				 base_error_text(), senseless[i][1]);
	}
}

static void a_rail_that_one_node_has_lost_is_used_by_none(void **state)
{
	struct sched_fabric fabric;
	unsigned int lost;

	(void)state;
	sched_fabric_init(&fabric);
	assert_int_equal(sched_fabric_read(&fabric, "f",
					   "nodes 4\nrail 1G 1us\n"
					   "rail 2G 2us\nrail 3G 3us\n"
					   "lost link node 2 rail 1\n"
					   "slow link node 1 rail 2 rate 1G"),
			 0);
	assert_int_equal(sched_fabric_check(&fabric, &lost), 0);
	assert_int_equal(lost, 2);
	assert_int_equal(fabric.n_rails, 2);
	assert_int_equal(fabric.rails[1].latency_ps, 3000000);
	assert_int_equal(fabric.n_faults, 1);
	assert_int_equal(fabric.faults[0].rail, 1);
}

/* What is written over the good text; most of it spoils it. */
static void a_text_spoilt_by_chance_is_read_or_refused(void **state)
{
	uint64_t seed = kit_seed();
	char text[sizeof(good)];
	struct sched_fabric fabric;
	int i, j;

	(void)state;
	for (i = 0; i < 20000; i++) {
		memcpy(text, good, sizeof(good));
		for (j = 0; j <= (int)kit_below(&seed, 4); j++)
			text[kit_below(&seed, sizeof(good) - 1)] =
				(char)kit_below(&seed, 256);
		sched_fabric_init(&fabric);
		if (sched_fabric_read(&fabric, "f", text)) {
			assert_ptr_equal(strstr(base_error_text(), "f:"),
					 base_error_text());
			continue;
		}
		if (!sched_fabric_check(&fabric, NULL)) {
			assert_in_range(fabric.n_ranks, 1, SCHED_RANKS_MAX);
			assert_in_range(fabric.n_nodes, 1, fabric.n_ranks);
		}
	}
}

static void make_net(struct sim_net *net, struct sched_fabric *fabric,
		     struct sched_shape *shape, const char *text)
{
	sched_fabric_init(fabric);
	if (sched_fabric_read(fabric, "f", text) ||
	    sched_fabric_check(fabric, NULL))
		fail_msg("%s", base_error_text());
	*shape = (struct sched_shape){
		.algo = SCHED_RING,
		.n_ranks = fabric->n_ranks,
		.n_nodes = fabric->n_nodes,
		.n_channels = 1,
	};
	assert_int_equal(sim_net_init(net, fabric, shape, 0), 0);
}

/* The names of the links, with a comma behind each. */
static const char *path_text(const struct sim_net *net, int from, int to)
{
	static char text[512];
	uint32_t path[SIM_PATH_MAX];
	char name[64];
	size_t at = 0;
	int i, n = sim_net_path(net, from, to, 0, path);

	if (n < 0)
		return base_error_text();
	for (i = 0; i < n; i++) {
		sim_net_name(net, path[i], name, sizeof(name));
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s,",
				       name);
	}
	return text;
}

static void a_path_climbs_no_higher_than_it_must(void **state)
{
	struct sched_fabric fabric;
	struct sched_shape shape;
	struct sim_net net;

	(void)state;
	make_net(&net, &fabric, &shape,
		 "nodes 8\nranks_per_node 2\nrail 1G 1us\nnvlink 9G 1us\n"
		 "topology spine-leaf leaf 4 oversubscription 2");
	assert_string_equal(path_text(&net, 0, 1),
			    "rank 0 in its node, out,rank 1 in its node, in,");
	assert_string_equal(path_text(&net, 0, 2),
			    "node 0 rail 0 out,node 1 rail 0 in,");
	assert_string_equal(path_text(&net, 0, 10),
			    "node 0 rail 0 out,leaf 0 way 1 rail 0 up,"
			    "leaf 1 way 1 rail 0 down,node 5 rail 0 in,");
	sim_net_release(&net);
	/* Leaves of two nodes, pods of two leaves: a third layer. */
	make_net(&net, &fabric, &shape,
		 "nodes 16\nrail 1G 1us\ntopology fat-tree radix 4");
	assert_string_equal(path_text(&net, 0, 3),
			    "node 0 rail 0 out,leaf 0 way 1 rail 0 up,"
			    "leaf 1 way 1 rail 0 down,node 3 rail 0 in,");
	assert_string_equal(path_text(&net, 0, 7),
			    "node 0 rail 0 out,leaf 0 way 1 rail 0 up,"
			    "pod 0 switch 1 core way 1 rail 0 up,"
			    "pod 1 switch 1 core way 1 rail 0 down,"
			    "leaf 3 way 1 rail 0 down,node 7 rail 0 in,");
	sim_net_release(&net);
}

static void lost_links_are_gone_round_while_there_is_a_way(void **state)
{
	struct sched_fabric fabric;
	struct sched_shape shape;
	struct sim_net net;

	(void)state;
	make_net(&net, &fabric, &shape,
		 "nodes 8\nrail 1G 1us\ntopology spine-leaf leaf 4 "
		 "oversubscription 2\nlost link leaf 1 rail 0 up 1");
	assert_string_equal(path_text(&net, 0, 5),
			    "node 0 rail 0 out,leaf 0 way 0 rail 0 up,"
			    "leaf 1 way 0 rail 0 down,node 5 rail 0 in,");
	sim_net_release(&net);
	make_net(&net, &fabric, &shape,
		 "nodes 8\nrail 1G 1us\ntopology spine-leaf leaf 4 "
		 "oversubscription 2\nlost link leaf 1 rail 0 up 1\n"
		 "lost link leaf 0 rail 0 up 0");
	assert_string_equal(path_text(&net, 0, 5),
			    "fabric: the lost links leave no way from leaf 0 "
			    "to leaf 1");
	sim_net_release(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_says_what_it_says),
		cmocka_unit_test(a_wrong_text_is_refused_where_it_is_wrong),
		cmocka_unit_test(a_fabric_without_sense_is_refused),
		cmocka_unit_test(a_rail_that_one_node_has_lost_is_used_by_none),
		cmocka_unit_test(a_text_spoilt_by_chance_is_read_or_refused),
		cmocka_unit_test(a_path_climbs_no_higher_than_it_must),
		cmocka_unit_test(
			lost_links_are_gone_round_while_there_is_a_way),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
