/* SPDX-License-Identifier: MIT */
/*
 * Goal: the text form is what a reader needs, no more, and never leaves its
 * buffer.
 * Method: exact texts of small cases; every buffer size up to the whole text.
 */
#include <stdarg.h>
#include <stddef.h>

#include "sched_kit.h"

static struct sched *make(enum sched_algo algo, int n_ranks, int n_channels,
			  int rank)
{
	struct sched_shape shape = {.algo = algo, .n_ranks = n_ranks,
				    .n_channels = n_channels};
	struct sched *sched;

	assert_int_equal(sched_make(&shape, rank, &sched), 0);
	return sched;
}

static void expect(struct sched *sched, const char *text)
{
	char out[4096];

	assert_int_equal(sched_print(sched, out, sizeof(out)), strlen(text));
	assert_string_equal(out, text);
	sched_free(sched);
}

static void a_ring_reads_as_it_runs(void **state)
{
	(void)state;
	expect(make(SCHED_RING, 4, 1, 0),
	       "collective  all_reduce\n"
	       "algorithm   ring\n"
	       "rank        0 of 4\n"
	       "channels    1\n"
	       "chunks      4 a pass\n"
	       "lane 0      channel 0, box 0, steps 7\n"
	       "\n"
	       "lane 0 step 0: input -> send 1                         chunk 0\n"
	       "lane 0 step 1: recv 3 + input -> send 1                chunk 3\n"
	       "lane 0 step 2: recv 3 + input -> send 1                chunk 2\n"
	       "lane 0 step 3: recv 3 + input -> store, send final 1   chunk 1\n"
	       "lane 0 step 4: recv final 3 -> store, send final 1     chunk 0\n"
	       "lane 0 step 5: recv final 3 -> store, send final 1     chunk 3\n"
	       "lane 0 step 6: recv final 3 -> store                   chunk 2\n");
}

static void lists_fold_in_the_order_shown(void **state)
{
	(void)state;
	expect(make(SCHED_ONESHOT, 6, 1, 2),
	       "collective  all_reduce\n"
	       "algorithm   oneshot\n"
	       "rank        2 of 6\n"
	       "channels    1\n"
	       "chunks      1 a pass\n"
	       "lane 0      channel 0, box 0, steps 1\n"
	       "lane 1      channel 0, box 1, steps 1\n"
	       "\n"
	       "lane 0 step 0: input -> send 3-5 0 1 in lane 1"
	       "        chunk 0\n"
	       "lane 1 step 0: recv 0 1 + input + recv 3-5 -> store"
	       "   chunk 0, after lane 0 step 0\n");
}

static void raw_input_and_finals_are_shown_at_both_ends(void **state)
{
	(void)state;
	expect(make(SCHED_TWOSHOT, 3, 1, 1),
	       "collective  all_reduce\n"
	       "algorithm   twoshot\n"
	       "rank        1 of 3\n"
	       "channels    1\n"
	       "chunks      3 a pass\n"
	       "lane 0      channel 0, box 0, steps 2\n"
	       "lane 1      channel 0, box 1, steps 1\n"
	       "lane 2      channel 0, box 2, steps 2\n"
	       "\n"
	       "lane 0 step 0: input -> send input 2 in lane 1   chunk 2\n"
	       "lane 0 step 1: input -> send input 0 in lane 1   chunk 0\n"
	       "lane 1 step 0: recv input 0 + input + recv input 2"
	       " -> store, send final 2 0 in lane 2   chunk 1\n"
	       "lane 2 step 0: recv final 0 -> store             chunk 0\n"
	       "lane 2 step 1: recv final 2 -> store             chunk 2\n");
}

static void raw_finals_root_and_node_are_shown(void **state)
{
	static const struct sched_shape shape = {
		.collective = SCHED_SCATTER, .algo = SCHED_DIRECT,
		.n_ranks = 3, .n_channels = 1, .root = 1, .n_nodes = 2};
	static const char *const texts[] = {
		"rank        1 of 3\n"
		"root        1\n"
		"node        0 of 2\n",
		"input -> send input final 2 in lane 1, await   chunk 2\n",
		"lane 1 step 0: recv input final 1 -> store   chunk 2\n",
	};
	struct sched *sched;
	char out[4096];
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(texts); i++) {
		assert_int_equal(sched_make(&shape, i < 2 ? 1 : 2, &sched), 0);
		sched_print(sched, out, sizeof(out));
		if (!strstr(out, texts[i]))
			fail_msg("'%s' is not in '%s'", texts[i], out);
		sched_free(sched);
	}
}

static void blocks_and_their_pieces_are_shown(void **state)
{
	struct sched_shape shape = {.collective = SCHED_REDUCE_SCATTER,
				    .algo = SCHED_RING, .n_ranks = 3,
				    .n_channels = 2};
	struct sched *sched;

	(void)state;
	assert_int_equal(sched_make(&shape, 0, &sched), 0);
	expect(sched,
	       "collective  reduce_scatter\n"
	       "algorithm   ring\n"
	       "rank        0 of 3\n"
	       "channels    2\n"
	       "chunks      6 a pass: 3 blocks of 2 pieces\n"
	       "lane 0      channel 0, box 0, steps 3\n"
	       "lane 1      channel 1, box 0, steps 3\n"
	       "\n"
	       "lane 0 step 0: input -> send 1"
	       "            chunk 4 (block 2 piece 0)\n"
	       "lane 0 step 1: recv 2 + input -> send 1"
	       "   chunk 2 (block 1 piece 0)\n"
	       "lane 0 step 2: recv 2 + input -> store"
	       "    chunk 0 (block 0 piece 0)\n"
	       "lane 1 step 0: input -> send 2"
	       "            chunk 3 (block 1 piece 1)\n"
	       "lane 1 step 1: recv 1 + input -> send 2"
	       "   chunk 5 (block 2 piece 1)\n"
	       "lane 1 step 2: recv 1 + input -> store"
	       "    chunk 1 (block 0 piece 1)\n");
	shape.algo = SCHED_DIRECT;
	shape.collective = SCHED_ALL_TO_ALL;
	shape.n_channels = 1;
	assert_int_equal(sched_make(&shape, 2, &sched), 0);
	expect(sched,
	       "collective  all_to_all\n"
	       "algorithm   direct\n"
	       "rank        2 of 3\n"
	       "channels    1\n"
	       "chunks      3 a pass: 3 blocks of 1 piece\n"
	       "lane 0      channel 0, box 0, steps 2\n"
	       "lane 1      channel 0, box 0, steps 2\n"
	       "lane 2      channel 0, box 0, steps 1\n"
	       "\n"
	       "lane 0 step 0: input -> send input final 0 in lane 1, await"
	       "   chunk 0\n"
	       "lane 0 step 1: input -> send input final 1 in lane 1, await"
	       "   chunk 1\n"
	       "lane 1 step 0: recv input final 1 -> store"
	       "                    chunk 1\n"
	       "lane 1 step 1: recv input final 0 -> store"
	       "                    chunk 0\n"
	       "lane 2 step 0: input -> store"
	       "                                 chunk 2\n");
}

static void one_rank_only_stores(void **state)
{
	(void)state;
	expect(make(SCHED_TWOSHOT, 1, 2, 0),
	       "collective  all_reduce\n"
	       "algorithm   twoshot\n"
	       "rank        0 of 1\n"
	       "channels    2\n"
	       "chunks      2 a pass\n"
	       "lane 0      channel 0, box 0, steps 1\n"
	       "lane 1      channel 1, box 0, steps 1\n"
	       "\n"
	       "lane 0 step 0: input -> store   chunk 0\n"
	       "lane 1 step 0: input -> store   chunk 1\n");
}

static void a_stored_chunk_is_shown_as_output(void **state)
{
	struct sched *sched = make(SCHED_RING, 3, 1, 0);
	char out[4096];

	(void)state;
	sched->steps[1].local = SCHED_OUTPUT;
	sched_print(sched, out, sizeof(out));
	assert_non_null(
		strstr(out, "lane 0 step 1: recv 2 + output -> send 1"));
	sched_free(sched);
}

static void any_buffer_holds_the_beginning_and_ends_it(void **state)
{
	struct sched *sched = make(SCHED_TWOSHOT, 5, 1, 3);
	char whole[4096], part[4096];
	size_t n = sched_print(sched, whole, sizeof(whole));
	size_t size;

	(void)state;
	assert_int_equal(sched_print(sched, NULL, 0), n);
	for (size = 1; size <= n + 1; size++) {
		memset(part, '#', sizeof(part));
		assert_int_equal(sched_print(sched, part, size), n);
		assert_int_equal(strlen(part), size - 1);
		assert_memory_equal(part, whole, size - 1);
		assert_int_equal(part[size], '#');
	}
	sched_free(sched);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_reads_as_it_runs),
		cmocka_unit_test(lists_fold_in_the_order_shown),
		cmocka_unit_test(raw_input_and_finals_are_shown_at_both_ends),
		cmocka_unit_test(raw_finals_root_and_node_are_shown),
		cmocka_unit_test(blocks_and_their_pieces_are_shown),
		cmocka_unit_test(one_rank_only_stores),
		cmocka_unit_test(a_stored_chunk_is_shown_as_output),
		cmocka_unit_test(any_buffer_holds_the_beginning_and_ends_it),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
