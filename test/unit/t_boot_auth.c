/* SPDX-License-Identifier: MIT */
/*
 * Goal: only who holds the secret proves anything.  Method: the handshake alone
 * over a socket pair, with every byte damaged, replayed, reflected and random.
 */
#include <sys/socket.h>

#include "boot/auth.h"
#include "boot_ranks.h"

static const unsigned char secret[BOOT_SECRET_BYTES] = {1, 2, 3};
static const unsigned char token[BOOT_TOKEN_BYTES] = {9};

struct pair {
	int fds[2];
	struct boot_auth client, server;
};

static void pair_init(struct pair *pair)
{
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair->fds),
		0);
	boot_auth_client(&pair->client, pair->fds[0], BOOT_TO_PARENT, 7, token);
	boot_auth_server(&pair->server, pair->fds[1], BOOT_TO_PARENT, token);
}

static void pair_release(struct pair *pair)
{
	close(pair->fds[0]);
	close(pair->fds[1]);
}

static void run(struct pair *pair, const unsigned char *clients,
		const unsigned char *servers)
{
	int i;

	for (i = 0; i < 4; i++) {
		boot_auth_step(&pair->client, clients);
		boot_auth_step(&pair->server, servers);
	}
}

static void one_secret_proves_both_ends(void **state)
{
	struct pair pair;

	(void)state;
	pair_init(&pair);
	run(&pair, secret, secret);
	assert_int_equal(pair.client.state, BOOT_AUTH_DONE);
	assert_int_equal(pair.server.state, BOOT_AUTH_DONE);
	assert_int_equal(pair.server.rank, 7);
	pair_release(&pair);
}

static void any_other_bit_of_the_secret_fails(void **state)
{
	struct pair pair;
	int bit;

	(void)state;
	for (bit = 0; bit < 256; bit++) {
		unsigned char other[BOOT_SECRET_BYTES];

		memcpy(other, secret, sizeof(other));
		other[bit / 8] ^= (unsigned char)(1 << bit % 8);
		pair_init(&pair);
		run(&pair, other, secret);
		assert_int_equal(pair.client.state, BOOT_AUTH_BAD_PROOF);
		assert_int_not_equal(pair.server.state, BOOT_AUTH_DONE);
		pair_release(&pair);
	}
}

/*
 * Carry the handshake by hand, with byte @at of all that goes from the client
 * to the server (0 to 95) changed: the server must not be done.
 */
static void damage_client_byte(size_t at)
{
	unsigned char wire[128];
	struct pair to_client, to_server;
	ssize_t n;

	/* Two pairs: each real end talks to us. */
	pair_init(&to_client);
	pair_init(&to_server);
	boot_auth_step(&to_client.client, secret);
	n = recv(to_client.fds[1], wire, 64, MSG_WAITALL);
	assert_int_equal(n, 64);
	if (at < 64)
		wire[at] ^= 0x40;
	assert_int_equal(send(to_server.fds[0], wire, 64, MSG_NOSIGNAL), 64);
	boot_auth_step(&to_server.server, secret);
	n = recv(to_server.fds[0], wire, 72, MSG_DONTWAIT);
	if (n == 72) {
		assert_int_equal(send(to_client.fds[1], wire, 72, MSG_NOSIGNAL),
				 72);
		boot_auth_step(&to_client.client, secret);
		n = recv(to_client.fds[1], wire, 32, MSG_DONTWAIT);
		if (n != 32)
			memset(wire, 0, 32);
		if (at >= 64)
			wire[at - 64] ^= 0x40;
		assert_int_equal(send(to_server.fds[0], wire, 32, MSG_NOSIGNAL),
				 32);
		boot_auth_step(&to_server.server, secret);
	}
	if (at < 96)
		assert_int_not_equal(to_server.server.state, BOOT_AUTH_DONE);
	else
		assert_int_equal(to_server.server.state, BOOT_AUTH_DONE);
	pair_release(&to_client);
	pair_release(&to_server);
}

static void every_byte_is_proved(void **state)
{
	size_t at;

	(void)state;
	for (at = 0; at < 96; at++)
		damage_client_byte(at);
}

static void a_recorded_handshake_is_no_proof(void **state)
{
	unsigned char hello[64], challenge[72], proof[32];
	struct pair pair, again;

	(void)state;
	pair_init(&pair);
	boot_auth_step(&pair.client, secret);
	assert_int_equal(recv(pair.fds[1], hello, 64, 0), 64);
	pair.server.hello = pair.client.hello;
	pair_init(&again);
	assert_int_equal(send(again.fds[0], hello, 64, MSG_NOSIGNAL), 64);
	boot_auth_step(&again.server, secret);
	assert_int_equal(recv(again.fds[0], challenge, 72, 0), 72);
	assert_int_equal(send(pair.fds[1], challenge, 72, MSG_NOSIGNAL), 72);
	assert_int_equal(boot_auth_step(&pair.client, secret), BOOT_AUTH_DONE);
	assert_int_equal(recv(pair.fds[1], proof, 32, 0), 32);
	assert_int_equal(send(again.fds[0], proof, 32, MSG_NOSIGNAL), 32);
	assert_int_equal(boot_auth_step(&again.server, secret), BOOT_AUTH_DONE);
	pair_release(&pair);
	pair_release(&again);

	/* The same bytes once more: the server's nonce is another. */
	pair_init(&again);
	assert_int_equal(send(again.fds[0], hello, 64, MSG_NOSIGNAL), 64);
	boot_auth_step(&again.server, secret);
	assert_int_equal(send(again.fds[0], proof, 32, MSG_NOSIGNAL), 32);
	assert_int_equal(boot_auth_step(&again.server, secret),
			 BOOT_AUTH_BAD_PROOF);
	pair_release(&again);
}

static void a_reflected_proof_is_none(void **state)
{
	struct pair pair;
	unsigned char challenge[72];

	(void)state;
	pair_init(&pair);
	boot_auth_step(&pair.client, secret);
	boot_auth_step(&pair.server, secret);
	/* A client without the secret sends the server's own proof back. */
	assert_int_equal(recv(pair.fds[0], challenge, 72, 0), 72);
	assert_int_equal(send(pair.fds[0], challenge + 40, 32, MSG_NOSIGNAL),
			 32);
	assert_int_equal(boot_auth_step(&pair.server, secret),
			 BOOT_AUTH_BAD_PROOF);
	pair_release(&pair);
}

static void random_bytes_prove_nothing(void **state)
{
	const char *given = getenv("SEED");
	unsigned int seed = given ? (unsigned int)strtoul(given, NULL, 10)
				  : (unsigned int)getpid();
	int round;

	(void)state;
	print_message("SEED=%u\n", seed);
	for (round = 0; round < 2000; round++) {
		unsigned char noise[256];
		struct pair pair;
		size_t n = 1 + (size_t)(rand_r(&seed) % 255);
		size_t i;

		pair_init(&pair);
		for (i = 0; i < n; i++)
			noise[i] = (unsigned char)rand_r(&seed);
		/* Half of them begin as they should. */
		if (round % 2 && n > 64) {
			memcpy(noise, &pair.client.hello, 64);
			noise[rand_r(&seed) % 64] ^= round % 4 == 1;
		}
		send(pair.fds[0], noise, n, MSG_NOSIGNAL);
		send(pair.fds[1], noise, n, MSG_NOSIGNAL);
		run(&pair, secret, secret);
		assert_int_not_equal(pair.client.state, BOOT_AUTH_DONE);
		assert_int_not_equal(pair.server.state, BOOT_AUTH_DONE);
		pair_release(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_secret_proves_both_ends),
		cmocka_unit_test(any_other_bit_of_the_secret_fails),
		cmocka_unit_test(every_byte_is_proved),
		cmocka_unit_test(a_recorded_handshake_is_no_proof),
		cmocka_unit_test(a_reflected_proof_is_none),
		cmocka_unit_test(random_bytes_prove_nothing),
	};

	alarm(60);
	return cmocka_run_group_tests_name("boot/auth", tests, NULL, NULL);
}
