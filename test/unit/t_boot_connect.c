/* SPDX-License-Identifier: MIT */
/*
 * Goal: strangers never disturb ranks.  Method: a live root, and live ranks
 * that wait for their children, under silence, noise, port scans and floods.
 */
#include <sys/socket.h>

#include "boot/sock.h"
#include "boot_ranks.h"

static struct ranks ranks;

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
			       &bytes) ||
		    !listens || boot_sock_local(fd, &out[n]))
			continue;
		n += out[n].family == 4 && boot_addr_port(&out[n]) != root_port;
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
		cmocka_unit_test(silent_connections_do_not_hold_up_ranks),
		cmocka_unit_test(port_scans_and_noise_are_ignored),
		cmocka_unit_test(a_flood_does_not_keep_ranks_out),
		cmocka_unit_test(strangers_do_not_take_a_childs_seat),
		cmocka_unit_test(descriptors_of_a_flood_are_bounded),
	};

	alarm(60);
	return cmocka_run_group_tests_name("boot/connect", tests, NULL, NULL);
}
