/* SPDX-License-Identifier: MIT */
/*
 * Goal: a rank knows its host and the cores that it may use.
 * Method: compare with what the system says, in children that are bound.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "topo/topo.h"

static void the_host_is_the_same_for_every_process_here(void **state)
{
	uint64_t id = topo_host_id();
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid)
		_exit(topo_host_id() != id);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_not_equal(id, 0);
}

static void cores_are_those_of_the_affinity(void **state)
{
	cpu_set_t set;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	assert_int_equal(topo_n_cores(), CPU_COUNT(&set));
}

/* In a child, since a binding stays. */
static int bound_to(int i)
{
	struct topo_cores cores;

	if (topo_bind(i))
		return 1;
	topo_cores(&cores);
	return topo_cores_count(&cores) != 1 || topo_n_cores() != 1;
}

static void every_core_can_be_bound_to_and_no_more(void **state)
{
	int n = topo_n_cores();
	int i, status;

	(void)state;
	for (i = 0; i <= n; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(i < n ? bound_to(i)
				    : topo_bind(i) != WREATH_EINVAL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

static void cores_of_several_ranks_add_up(void **state)
{
	struct topo_cores a = {{5}}, b = {{6, 1}};

	(void)state;
	topo_cores_add(&a, &b);
	assert_int_equal(topo_cores_count(&a), 4);
	/* Nobody runs on no core: a set that could not be read counts one. */
	a = (struct topo_cores){{0}};
	assert_int_equal(topo_cores_count(&a), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_host_is_the_same_for_every_process_here),
		cmocka_unit_test(cores_are_those_of_the_affinity),
		cmocka_unit_test(every_core_can_be_bound_to_and_no_more),
		cmocka_unit_test(cores_of_several_ranks_add_up),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
