/* SPDX-License-Identifier: MIT */
/*
 * Goal: only who holds the secret gets in, and strangers never disturb those
 * who do.  Method: the handshake alone over a socket pair, with every byte
 * damaged, replayed and reflected; then a live root, and live ranks that wait
 * for their children, under random bytes, silence and floods.
 */
#include <netinet/in.h>
#include <sys/socket.h>

#include "boot/auth.h"
#include "boot/sock.h"
#include "boot_ranks.h"

static const unsigned char secret[BOOT_SECRET_BYTES] = {1, 2, 3};
static const unsigned char token[BOOT_TOKEN_BYTES] = {9};
static struct ranks ranks;

/* ---- the handshake alone ---- */

struct pair {
	int fds[2];
	struct boot_auth client, server;
};

static void pair_init(struct pair *pair)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    pair->fds), 0);
	boot_auth_client(&pair->client, pair->fds[0], BOOT_TO_PARENT, 7,
			 token);
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
		assert_int_equal(send(to_client.fds[1], wire, 72,
				      MSG_NOSIGNAL), 72);
		boot_auth_step(&to_client.client, secret);
		n = recv(to_client.fds[1], wire, 32, MSG_DONTWAIT);
		if (n != 32)
			memset(wire, 0, 32);
		if (at >= 64)
			wire[at - 64] ^= 0x40;
		assert_int_equal(send(to_server.fds[0], wire, 32,
				      MSG_NOSIGNAL), 32);
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
	assert_int_equal(boot_auth_step(&pair.client, secret),
			 BOOT_AUTH_DONE);
	assert_int_equal(recv(pair.fds[1], proof, 32, 0), 32);
	assert_int_equal(send(again.fds[0], proof, 32, MSG_NOSIGNAL), 32);
	assert_int_equal(boot_auth_step(&again.server, secret),
			 BOOT_AUTH_DONE);
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
	unsigned int seed = given ? (unsigned int)atoi(given) :
				    (unsigned int)getpid();
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

/* ---- a live root ---- */

static int connect_to(const struct boot_addr *at)
{
	int fd = boot_sock_connect(at);

	if (fd >= 0 &&
	    !boot_sock_wait(fd, POLLOUT, base_now_ns() + 1000000000u))
		boot_sock_close(&fd);
	return fd;
}

static void join_all(int n)
{
	uint64_t start_ns = base_now_ns();

	run_threads(&ranks, 0, n);
	all_were_good(&ranks);
	/* Nobody had to wait for a stranger's five seconds. */
	assert_true(ms_since(start_ns) < 4000);
}

static struct boot_addr root_addr(int n)
{
	struct boot_id id;

	ranks_init(&ranks, n, NULL);
	assert_int_equal(boot_root_start("lo", 1, &ranks.id), 0);
	assert_int_equal(boot_id_decode(&ranks.id, &id), 0);
	return id.addrs[0];
}

static void silent_connections_do_not_hold_up_ranks(void **state)
{
	struct boot_addr at = root_addr(8);
	int fds[200];
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(fds); i++) {
		fds[i] = connect_to(&at);
		/* Some say half a hello, and then no more. */
		if (i % 3 == 0 && fds[i] >= 0)
			boot_sock_send(fds[i], "wreathb", 7);
	}
	join_all(8);
	for (i = 0; i < base_countof(fds); i++)
		boot_sock_close(&fds[i]);
}

static void port_scans_and_noise_are_ignored(void **state)
{
	struct boot_addr at = root_addr(8);
	unsigned char noise[4096];
	int i;

	(void)state;
	for (i = 0; i < 300; i++) {
		int fd = connect_to(&at);

		base_random(noise, sizeof(noise));
		if (i % 4 == 1)
			boot_sock_send(fd, noise, (size_t)(i % 8));
		if (i % 4 == 2)
			boot_sock_send(fd, noise, sizeof(noise));
		if (i % 4 == 3) {
			/* What would be a length of 4 GB, were it read. */
			memset(noise, 0xff, sizeof(noise));
			boot_sock_send(fd, noise, 128);
		}
		boot_sock_close(&fd);
	}
	join_all(8);
}

struct flood {
	struct boot_addr at;
	int n;
	_Atomic bool stop;
};

static void *pour(void *arg)
{
	struct flood *flood = arg;
	int open[64];
	int i;

	memset(open, -1, sizeof(open));
	for (i = 0; i < flood->n && !flood->stop; i++) {
		int *fd = &open[i % 64];

		boot_sock_close(fd);
		*fd = connect_to(&flood->at);
		if (i % 2 && *fd >= 0)
			boot_sock_send(*fd, "GET / HTTP/1.0\r\n\r\n", 18);
	}
	for (i = 0; i < 64; i++)
		boot_sock_close(&open[i]);
	return NULL;
}

static void a_flood_does_not_keep_ranks_out(void **state)
{
	struct flood flood = {.at = root_addr(16), .n = 2000};
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, pour, &flood), 0);
	ms_sleep(5);
	join_all(16);
	pthread_join(thread, NULL);
}

/* The listeners of this process at 127.0.0.1 that are not the root's. */
static int find_listeners(unsigned int root_port, struct boot_addr *out,
			  int max)
{
	int n = 0;
	int fd;

	for (fd = 3; fd < 256 && n < max; fd++) {
		int listens = 0;
		socklen_t bytes = sizeof(listens);

		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens,
			       &bytes) || !listens ||
		    boot_sock_local(fd, &out[n]))
			continue;
		n += out[n].family == 4 &&
		     boot_addr_port(&out[n]) != root_port;
	}
	return n;
}

static void strangers_do_not_take_a_childs_seat(void **state)
{
	struct boot_addr root = root_addr(6);
	struct boot_addr at[16];
	struct flood floods[2] = {{.n = 100000}, {.n = 100000}};
	pthread_t threads[2];
	int i, n;

	(void)state;
	/* All but the last wait for it, and listen. */
	for (i = 0; i < 5; i++)
		pthread_create(&ranks.rank[i].thread, NULL, rank_run,
			       &ranks.rank[i]);
	ms_sleep(300);
	n = find_listeners(boot_addr_port(&root), at, 16);
	assert_int_equal(n, 5);
	for (i = 0; i < 2; i++) {
		floods[i].at = at[i];
		pthread_create(&threads[i], NULL, pour, &floods[i]);
	}
	ms_sleep(20);
	run_threads(&ranks, 5, 1);
	for (i = 0; i < 2; i++) {
		floods[i].stop = true;
		pthread_join(threads[i], NULL);
	}
	for (i = 0; i < 5; i++)
		pthread_join(ranks.rank[i].thread, NULL);
	all_were_good(&ranks);
}

static void descriptors_of_a_flood_are_bounded(void **state)
{
	struct boot_addr at = root_addr(2);
	int fds[400];
	int before = count_fds();
	int i;

	(void)state;
	for (i = 0; i < 400; i++)
		fds[i] = connect_to(&at);
	ms_sleep(100);
	/* Ours are 400; the root keeps at most 128 of the other ends. */
	assert_in_range(count_fds() - before, 400, 400 + 128);
	for (i = 0; i < 400; i++)
		boot_sock_close(&fds[i]);
	join_all(2);
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
		cmocka_unit_test(silent_connections_do_not_hold_up_ranks),
		cmocka_unit_test(port_scans_and_noise_are_ignored),
		cmocka_unit_test(a_flood_does_not_keep_ranks_out),
		cmocka_unit_test(strangers_do_not_take_a_childs_seat),
		cmocka_unit_test(descriptors_of_a_flood_are_bounded),
	};

	alarm(60);
	return cmocka_run_group_tests_name("boot/auth", tests, NULL, NULL);
}
