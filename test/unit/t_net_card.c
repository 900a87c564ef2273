/* SPDX-License-Identifier: MIT */
/*
 * Goal: a card survives its journey whole, and nothing but the card that a
 * peer with the token wrote is ever taken for one.
 * Method: random cards there and back; every bit of one damaged in turn; cards
 * of other tokens, cut, padded and random ones, in buffers of exactly their
 * size, so that the address sanitizer sees a byte read too far.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/cm.h"

static uint64_t seed;

static uint64_t next(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed >> 33 ^ seed;
}

static void random_bytes(unsigned char *out, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		out[i] = (unsigned char)(next() >> 24);
}

static struct net_card random_card(void)
{
	struct net_card card;

	memset(&card, 0, sizeof(card));
	card.kind = next() & 1 ? NET_CARD_REQUEST : NET_CARD_REPLY;
	card.channel = (uint8_t)(next() % NET_CHANNELS_MAX);
	card.rank = (uint16_t)next();
	card.n_slots = (uint8_t)(next() % (NET_SLOTS_MAX + 1));
	card.slot_bytes = (uint32_t)next();
	card.address = next() << 32 ^ next();
	card.board = next() << 32 ^ next();
	card.rkey = (uint32_t)next();
	card.board_rkey = (uint32_t)next();
	return card;
}

/* As a reader would: in a buffer of its own, of exactly @n bytes. */
static bool is_taken(const unsigned char *bytes, size_t n,
		     const unsigned char *token, struct net_card *card)
{
	unsigned char *copy = malloc(n ? n : 1);
	bool taken;

	assert_non_null(copy);
	memcpy(copy, bytes, n);
	taken = net_card_read(copy, n, card) &&
		net_card_is_genuine(copy, n, token);
	free(copy);
	return taken;
}

static void card_comes_out_as_it_went_in(void **state)
{
	unsigned char bytes[NET_CARD_BYTES], token[NET_TOKEN_BYTES];
	int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		struct net_card card = random_card();
		struct net_card out;

		memset(&out, 0, sizeof(out));
		random_bytes(token, sizeof(token));
		net_card_write(&card, token, bytes);
		assert_true(is_taken(bytes, sizeof(bytes), token, &out));
		assert_int_equal(out.kind, card.kind);
		assert_int_equal(out.channel, card.channel);
		assert_int_equal(out.rank, card.rank);
		assert_int_equal(out.n_slots, card.n_slots);
		assert_int_equal(out.slot_bytes, card.slot_bytes);
		assert_true(out.address == card.address);
		assert_true(out.board == card.board);
		assert_int_equal(out.rkey, card.rkey);
		assert_int_equal(out.board_rkey, card.board_rkey);
	}
}

static void every_damaged_bit_is_refused(void **state)
{
	unsigned char bytes[NET_CARD_BYTES], token[NET_TOKEN_BYTES];
	struct net_card card = random_card();
	size_t bit;

	(void)state;
	random_bytes(token, sizeof(token));
	net_card_write(&card, token, bytes);
	for (bit = 0; bit < sizeof(bytes) * 8; bit++) {
		bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_false(is_taken(bytes, sizeof(bytes), token, &card));
		bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	assert_true(is_taken(bytes, sizeof(bytes), token, &card));
}

static void another_token_is_refused(void **state)
{
	unsigned char bytes[NET_CARD_BYTES], token[NET_TOKEN_BYTES];
	struct net_card card = random_card();
	size_t bit;

	(void)state;
	random_bytes(token, sizeof(token));
	net_card_write(&card, token, bytes);
	for (bit = 0; bit < sizeof(token) * 8; bit++) {
		token[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_false(is_taken(bytes, sizeof(bytes), token, &card));
		token[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
}

static void cut_card_is_refused_and_padding_ignored(void **state)
{
	unsigned char bytes[256], token[NET_TOKEN_BYTES];
	struct net_card card = random_card();
	size_t n;

	(void)state;
	memset(bytes, 0, sizeof(bytes));
	random_bytes(token, sizeof(token));
	net_card_write(&card, token, bytes);
	for (n = 0; n <= sizeof(bytes); n++)
		assert_int_equal(is_taken(bytes, n, token, &card),
				 n >= NET_CARD_BYTES);
}

static void what_is_out_of_bounds_is_refused_though_proven(void **state)
{
	unsigned char bytes[NET_CARD_BYTES], token[NET_TOKEN_BYTES];
	struct net_card wrong[3];
	struct net_card out;
	size_t i;

	(void)state;
	random_bytes(token, sizeof(token));
	for (i = 0; i < base_countof(wrong); i++)
		wrong[i] = random_card();
	wrong[0].channel = NET_CHANNELS_MAX;
	wrong[1].n_slots = NET_SLOTS_MAX + 1;
	wrong[2].kind = 3;
	for (i = 0; i < base_countof(wrong); i++) {
		net_card_write(&wrong[i], token, bytes);
		assert_true(net_card_is_genuine(bytes, sizeof(bytes), token));
		assert_false(net_card_read(bytes, sizeof(bytes), &out));
	}
}

static void random_bytes_are_no_card(void **state)
{
	unsigned char bytes[256], token[NET_TOKEN_BYTES];
	struct net_card card = random_card();
	int i;

	(void)state;
	random_bytes(token, sizeof(token));
	for (i = 0; i < 20000; i++) {
		size_t n = next() % sizeof(bytes);

		random_bytes(bytes, n);
		/* Half of them look well at their beginning. */
		if (i & 1 && n >= 12) {
			unsigned char good[NET_CARD_BYTES];

			net_card_write(&card, token, good);
			memcpy(bytes, good, 12);
		}
		assert_false(is_taken(bytes, n, token, &card));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(card_comes_out_as_it_went_in),
		cmocka_unit_test(every_damaged_bit_is_refused),
		cmocka_unit_test(another_token_is_refused),
		cmocka_unit_test(cut_card_is_refused_and_padding_ignored),
		cmocka_unit_test(
			what_is_out_of_bounds_is_refused_though_proven),
		cmocka_unit_test(random_bytes_are_no_card),
	};
	const char *given = getenv("SEED");

	alarm(60);
	seed = given ? strtoull(given, NULL, 0) : base_now_ns();
	printf("SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
