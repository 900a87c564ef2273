/* SPDX-License-Identifier: MIT */
/*
 * Goal: bytes that are no frame, even from a rank that has proved itself, end
 * the communicator with that rank's name, and nothing else.  Method: put
 * hostile frames and noise into a real rank's connection to its parent.
 */
#include "boot/sock.h"
#include "boot/tree.h"
#include "boot_ranks.h"

static struct ranks ranks;

/* Whole for the others' sake: rank 1 leaves by itself. */
static int wait_failure(struct a_rank *rank)
{
	struct boot_failure failure;
	int i;

	for (i = 0; i < 5000; i++) {
		if (boot_failure(rank->boot, &failure)) {
			snprintf(rank->text, sizeof(rank->text), "%s",
				 failure.text);
			return failure.error;
		}
		ms_sleep(1);
	}
	return 0;
}

struct hostile {
	unsigned char bytes[8192];
	size_t n;
};

static int be_hostile(struct a_rank *rank)
{
	struct hostile *hostile = rank->ranks->arg;

	if (rank->rank == 1) {
		struct boot_link *link = &rank->boot->links[0];

		pthread_mutex_lock(&rank->boot->lock);
		if (boot_sock_send(link->fd, hostile->bytes, hostile->n) < 1)
			rank->result = 1;
		pthread_mutex_unlock(&rank->boot->lock);
	}
	return wait_failure(rank);
}

static void inject(const struct hostile *hostile)
{
	int i;

	ranks_init(&ranks, 4, be_hostile);
	ranks.arg = (void *)(uintptr_t)hostile;
	assert_int_equal(boot_root_start("lo", 1, &ranks.id), 0);
	run_threads(&ranks, 0, 4);
	for (i = 0; i < 4; i++) {
		if (i == 1)
			continue;
		assert_int_equal(ranks.rank[i].result, WREATH_ENET);
		assert_has(ranks.rank[i].text, "rank 1 (host ");
		assert_has(ranks.rank[i].text, "no frame of the protocol");
	}
}

static void frames_out_of_place_name_their_sender(void **state)
{
	/* Of 4 ranks, all are children of rank 0; the first gather is over. */
	static const struct boot_head heads[] = {
		{.type = BOOT_JOIN},
		{.type = BOOT_REFUSED, .bytes = 10},
		{.type = BOOT_UP, .sequence = 1, .value = 8, .bytes = 8},
		{.type = BOOT_UP, .sequence = 3, .value = 8, .bytes = 8},
		{.type = BOOT_UP, .sequence = 2, .value = 8, .bytes = 16},
		{.type = BOOT_UP,
		 .sequence = 2,
		 .value = UINT32_MAX,
		 .bytes = UINT32_MAX},
		{.type = BOOT_UP, .sequence = 2, .value = 4097, .bytes = 4097},
		{.type = BOOT_DOWN, .sequence = 2, .value = 8, .bytes = 32},
		{.type = BOOT_MESSAGE, .source = 1, .target = 0, .bytes = 4097},
		{.type = BOOT_MESSAGE,
		 .source = 1,
		 .target = 0,
		 .bytes = UINT32_MAX},
		{.type = BOOT_MESSAGE, .source = 2, .target = 0, .bytes = 1},
		{.type = BOOT_MESSAGE, .source = 1, .target = 4, .bytes = 1},
		{.type = BOOT_MESSAGE, .source = 1, .target = UINT32_MAX},
		{.type = BOOT_MESSAGE, .source = UINT32_MAX, .target = 0},
		{.type = BOOT_MESSAGE, .source = 1, .target = 1, .bytes = 1},
		{.type = BOOT_CREDIT, .source = 1, .target = 0, .value = 1},
		{.type = BOOT_CREDIT,
		 .source = 1,
		 .target = 0,
		 .value = UINT32_MAX},
		{.type = BOOT_CREDIT, .source = 1, .target = 0, .bytes = 1},
		{.type = BOOT_FAIL,
		 .source = 0,
		 .value = 13,
		 .bytes = BOOT_TEXT_BYTES},
		{.type = BOOT_FAIL, .source = 0, .value = 0, .bytes = 4},
		{.type = BOOT_FAIL, .source = 9, .value = 13, .bytes = 4},
		{.type = BOOT_FAIL, .source = 0, .value = 0x80000001u},
		{.type = BOOT_LEAVE, .source = 0},
		{.type = BOOT_LEAVE, .source = 2},
		{.type = BOOT_LEAVE, .source = 70000},
		{.type = BOOT_LEAVE, .source = 1, .bytes = 7},
	};
	static struct hostile hostile;
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(heads); i++) {
		hostile.n = 64;
		memset(hostile.bytes, 'x', hostile.n);
		boot_head_encode(&heads[i], hostile.bytes);
		inject(&hostile);
	}
}

static void noise_names_its_sender(void **state)
{
	static struct hostile hostile;
	const char *given = getenv("SEED");
	unsigned int seed = given ? (unsigned int)strtoul(given, NULL, 10)
				  : (unsigned int)getpid();
	int round;

	(void)state;
	print_message("SEED=%u\n", seed);
	for (round = 0; round < 40; round++) {
		size_t i;

		hostile.n = 64 + (size_t)(rand_r(&seed) % 8000);
		for (i = 0; i < hostile.n; i++)
			hostile.bytes[i] = (unsigned char)rand_r(&seed);
		/* The type alone is right, in half of them. */
		if (round % 2) {
			memset(hostile.bytes + 4, 0, 4);
			hostile.bytes[4] = (unsigned char)(5 + round % 6);
			memset(hostile.bytes + 28, 0, 4);
		}
		inject(&hostile);
	}
}

static int flood_inbox(struct a_rank *rank)
{
	int i;

	if (rank->rank == 1) {
		unsigned char frame[BOOT_HEAD_BYTES];
		struct boot_head head = {.type = BOOT_MESSAGE, .source = 1};

		boot_head_encode(&head, frame);
		pthread_mutex_lock(&rank->boot->lock);
		for (i = 0; i < 2 * BOOT_WINDOW; i++)
			boot_sock_send(rank->boot->links[0].fd, frame,
				       sizeof(frame));
		pthread_mutex_unlock(&rank->boot->lock);
	}
	return wait_failure(rank);
}

static void more_messages_than_the_window_are_a_breach(void **state)
{
	(void)state;
	ranks_init(&ranks, 3, flood_inbox);
	assert_int_equal(boot_root_start("lo", 1, &ranks.id), 0);
	run_threads(&ranks, 0, 3);
	assert_int_equal(ranks.rank[0].result, WREATH_ENET);
	assert_int_equal(ranks.rank[2].result, WREATH_ENET);
	assert_has(ranks.rank[2].text, "rank 1 (host ");
}

static void heads_survive_the_wire(void **state)
{
	struct boot_head head = {
		.bytes = 0x01020304,
		.type = BOOT_LEAVE,
		.source = 0x05060708,
		.target = 0x090a0b0c,
		.sequence = 0x1122334455667788,
		.value = 0xdeadbeef,
	};
	struct boot_head again;
	unsigned char wire[BOOT_HEAD_BYTES];
	unsigned char wire_again[BOOT_HEAD_BYTES];

	(void)state;
	boot_head_encode(&head, wire);
	assert_int_equal(wire[0], 4);
	assert_true(boot_head_decode(wire, &again));
	assert_int_equal(again.value, 0xdeadbeef);
	boot_head_encode(&again, wire_again);
	assert_memory_equal(wire, wire_again, sizeof(wire));
	head.type = BOOT_LAST_FRAME + 1;
	boot_head_encode(&head, wire);
	assert_false(boot_head_decode(wire, &again));
	head.type = 0;
	boot_head_encode(&head, wire);
	assert_false(boot_head_decode(wire, &again));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_survive_the_wire),
		cmocka_unit_test(frames_out_of_place_name_their_sender),
		cmocka_unit_test(noise_names_its_sender),
		cmocka_unit_test(more_messages_than_the_window_are_a_breach),
	};

	alarm(60);
	return cmocka_run_group_tests_name("boot/link", tests, NULL, NULL);
}
