/* SPDX-License-Identifier: MIT */
/*
 * Goal: id, rank and number of ranks are found under each launcher, several
 * times from one environment, and half an environment is named.  Method:
 * forked ranks with a launcher's variables set by hand; and, where mpirun is
 * there, this program run by the real ones.
 */
#include "boot_ranks.h"

static const char *self;

/* A launcher's variables; %d is the rank. */
struct setting {
	const char *name, *value;
};

static void set_all(const struct setting *settings, int rank)
{
	char value[512];

	clearenv();
	setenv("WREATH_JOIN_TIMEOUT", "10s", 1);
	for (; settings->name; settings++) {
		/* The only conversion is the rank. */
		if (!strcmp(settings->value, "%d"))
			snprintf(value, sizeof(value), "%d", rank);
		else
			snprintf(value, sizeof(value), "%s", settings->value);
		setenv(settings->name, value, 1);
	}
}

static int discover(struct boot_place *place)
{
	static struct base_env env;
	int err = base_env_load(&env);

	return err ? err : boot_discover(&env, place);
}

/* Find a place, join, and see everybody: 0 is good. */
static int join_once(const char *found_by, int rank, int n_ranks)
{
	struct boot_place place;
	struct boot_args args = {
		.id = &place.id,
		.join_timeout_ms = 10000,
		.timeout_ms = 10000,
	};
	struct boot *boot;
	int all[MAX_RANKS];
	int err = discover(&place);
	int i;

	if (err)
		goto bad;
	if (!strstr(place.found_by, found_by) ||
	    (rank >= 0 && place.rank != rank) || place.n_ranks != n_ranks) {
		fprintf(stderr, "found %d of %d by %s\n", place.rank,
			place.n_ranks, place.found_by);
		return 2;
	}
	args.rank = place.rank;
	args.n_ranks = place.n_ranks;
	err = boot_open(&args, &boot);
	if (err)
		goto bad;
	err = boot_all_gather(boot, &place.rank, sizeof(int), all);
	for (i = 0; !err && i < n_ranks; i++)
		err = all[i] != i;
	boot_close(boot);
	return err ? 3 : 0;
bad:
	fprintf(stderr, "rank %d: %d %s\n", rank, err, wreath_error_text());
	return 1;
}

static void join_thrice(const struct setting *settings, const char *found_by,
			int n)
{
	pid_t pids[MAX_RANKS];
	int i;

	for (i = 0; i < n; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (!pids[i]) {
			int round;
			int err = 0;

			alarm(30);
			set_all(settings, i);
			for (round = 0; !err && round < 3; round++)
				err = join_once(found_by, i, n);
			exit(err);
		}
	}
	for (i = 0; i < n; i++)
		assert_int_equal(wait_rank(pids[i]), 0);
}

static void wreath_variables_are_enough(void **state)
{
	struct wreath_unique_id id;
	struct a_root root = fork_root(0, &id);
	char hex[257];
	struct setting settings[] = {
		{"WREATH_COMM_ID", hex},
		{"WREATH_RANK", "%d"},
		{"WREATH_N_RANKS", "3"},
		/* Another launcher's, which comes after. */
		{"RANK", "7"},
		{NULL, NULL},
	};

	(void)state;
	boot_id_to_hex(&id, hex);
	join_thrice(settings, "WREATH_COMM_ID", 3);
	end_root(root);
}

static void torchrun_on_one_host(void **state)
{
	static const struct setting settings[] = {
		{"RANK", "%d"},
		{"WORLD_SIZE", "4"},
		{"LOCAL_WORLD_SIZE", "4"},
		{"MASTER_ADDR", "host.that.need.not.exist"},
		{"MASTER_PORT", "29500"},
		{"TORCHELASTIC_RUN_ID", "none"},
		{"TORCHELASTIC_RESTART_COUNT", "0"},
		{NULL, NULL},
	};

	(void)state;
	join_thrice(settings, "torchrun (this host)", 4);
}

static void torch_without_torchrun_on_localhost(void **state)
{
	static const struct setting settings[] = {
		{"RANK", "%d"},
		{"WORLD_SIZE", "2"},
		{"MASTER_ADDR", "localhost"},
		{"MASTER_PORT", "29501"},
		{NULL, NULL},
	};

	(void)state;
	join_thrice(settings, "torchrun (this host)", 2);
}

static void torchrun_on_several_hosts(void **state)
{
	static const struct setting settings[] = {
		{"RANK", "%d"},
		{"WORLD_SIZE", "4"},
		{"LOCAL_WORLD_SIZE", "2"},
		{"MASTER_ADDR", "127.0.0.1"},
		{"MASTER_PORT", "29507"},
		{"WREATH_SOCKET_IFNAME", "lo"},
		{"TORCHELASTIC_RUN_ID", "abc"},
		{NULL, NULL},
	};

	(void)state;
	join_thrice(settings, "torchrun (several hosts)", 4);
}

static void open_mpi_on_one_host(void **state)
{
	static const struct setting settings[] = {
		{"OMPI_COMM_WORLD_RANK", "%d"},
		{"OMPI_COMM_WORLD_SIZE", "3"},
		{"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
		{"PMIX_NAMESPACE", "3254124545"},
		{NULL, NULL},
	};

	(void)state;
	join_thrice(settings, "Open MPI", 3);
}

static void no_launcher_is_one_rank(void **state)
{
	static const struct setting settings[] = {{NULL, NULL}};

	(void)state;
	join_thrice(settings, "no launcher", 1);
}

static void one_rank_of_a_launcher_needs_nobody(void **state)
{
	static const struct setting open_mpi[] = {
		{"OMPI_COMM_WORLD_RANK", "0"},
		{"OMPI_COMM_WORLD_SIZE", "1"},
		{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
		{NULL, NULL},
	};
	static const struct setting pmi[] = {
		{"PMI_RANK", "0"},
		{"PMI_SIZE", "1"},
		{"PMI_FD", "99"},
		{NULL, NULL},
	};

	(void)state;
	join_thrice(open_mpi, "Open MPI", 1);
	join_thrice(pmi, "PMI-1", 1);
}

/* ---- what is wrong is named ---- */

static const struct {
	struct setting settings[8];
	int error;
	const char *text;
} wrong[] = {
	{{{"WREATH_RANK", "0"}, {"WREATH_N_RANKS", "2"}},
	 WREATH_EINVAL,
	 "WREATH_COMM_ID is not set"},
	{{{"WREATH_COMM_ID", "00"}, {"WREATH_N_RANKS", "2"}},
	 WREATH_EINVAL,
	 "WREATH_RANK is not set"},
	{{{"WREATH_COMM_ID", "00"}, {"WREATH_RANK", "0"}},
	 WREATH_EINVAL,
	 "WREATH_N_RANKS is not set"},
	{{{"WREATH_COMM_ID", "00"},
	  {"WREATH_RANK", "2"},
	  {"WREATH_N_RANKS", "2"}},
	 WREATH_EINVAL,
	 "WREATH_RANK=2 is not in [0, 2)"},
	{{{"WREATH_COMM_ID", "00"},
	  {"WREATH_RANK", "1"},
	  {"WREATH_N_RANKS", "2"}},
	 WREATH_EINVAL,
	 "256 digits"},
	{{{"RANK", "0"}}, WREATH_EINVAL, "WORLD_SIZE is not set"},
	{{{"WORLD_SIZE", "2"}}, WREATH_EINVAL, "RANK is not set"},
	{{{"RANK", "0"}, {"WORLD_SIZE", "2"}},
	 WREATH_EINVAL,
	 "MASTER_PORT is not set"},
	{{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "2900"}},
	 WREATH_EINVAL,
	 "MASTER_ADDR is not set"},
	{{{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "2900"}},
	 WREATH_EINVAL,
	 "RANK='2' (of torchrun) is not a whole number from 0 "
	 "to 1"},
	{{{"RANK", "0"}, {"WORLD_SIZE", "zwei"}},
	 WREATH_EINVAL,
	 "WORLD_SIZE='zwei'"},
	{{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "65536"}},
	 WREATH_EINVAL,
	 "MASTER_PORT='65536'"},
	{{{"RANK", "1"},
	  {"WORLD_SIZE", "2"},
	  {"MASTER_PORT", "2900"},
	  {"LOCAL_WORLD_SIZE", "1"},
	  {"MASTER_ADDR", "no such host"}},
	 WREATH_EINVAL,
	 "MASTER_ADDR='no such host'"},
	{{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}},
	 WREATH_EINVAL,
	 "PMI_FD is not set"},
	{{{"PMI_RANK", "0"}, {"PMI_FD", "3"}},
	 WREATH_EINVAL,
	 "PMI_SIZE is not set"},
	{{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"PMI_FD", "999"}},
	 WREATH_EINVAL,
	 "PMI_FD=999 is no connection"},
	{{{"OMPI_COMM_WORLD_RANK", "0"}},
	 WREATH_EINVAL,
	 "OMPI_COMM_WORLD_SIZE is not set"},
	{{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}},
	 WREATH_EINVAL,
	 "OMPI_COMM_WORLD_LOCAL_SIZE is not set"},
	{{{"OMPI_COMM_WORLD_RANK", "0"},
	  {"OMPI_COMM_WORLD_SIZE", "2"},
	  {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
	 WREATH_EINVAL,
	 "PMIX_NAMESPACE is not set"},
	{{{"OMPI_COMM_WORLD_RANK", "0"},
	  {"OMPI_COMM_WORLD_SIZE", "4"},
	  {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
	 WREATH_EUNSUP,
	 "set WREATH_COMM_ID"},
	/* Rank 0 never comes. */
	{{{"OMPI_COMM_WORLD_RANK", "1"},
	  {"OMPI_COMM_WORLD_SIZE", "2"},
	  {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
	  {"PMIX_NAMESPACE", "nobody"},
	  {"WREATH_JOIN_TIMEOUT", "200ms"}},
	 WREATH_ETIMEOUT,
	 "rank 1 (Open MPI) got no id from rank 0 within "
	 "200 ms"},
};

static void what_is_missing_or_wrong_is_named(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(wrong); i++) {
		pid_t pid = fork();

		if (!pid) {
			struct boot_place place;
			int err;

			alarm(20);
			set_all(wrong[i].settings, 0);
			err = discover(&place);
			if (err == wrong[i].error &&
			    strstr(wreath_error_text(), wrong[i].text))
				_exit(0);
			fprintf(stderr, "row %zu: %d %s\n", i, err,
				wreath_error_text());
			_exit(1);
		}
		assert_int_equal(wait_rank(pid), 0);
	}
}

/* ---- the real launchers ---- */

static void run_by(const char *command, const char *found_by)
{
	char line[1024];
	int status;

	snprintf(line, sizeof(line), "command -v %.*s >/dev/null 2>&1",
		 (int)strcspn(command, " "), command);
	if (system(line)) {
		print_message("skipped: no %.*s here\n",
			      (int)strcspn(command, " "), command);
		skip();
	}
	snprintf(line, sizeof(line),
		 "exec timeout 30 %s -n 3 %s --rank '%s' 2>&1", command, self,
		 found_by);
	status = system(line);
	assert_int_equal(status, 0);
}

static void mpich_starts_ranks(void **state)
{
	(void)state;
	run_by("mpirun.mpich", "PMI-1");
}

static void open_mpi_starts_ranks(void **state)
{
	(void)state;
	run_by("mpirun.openmpi --allow-run-as-root --oversubscribe",
	       "Open MPI");
}

/* This program as a rank of a real launcher. */
static int be_a_rank(const char *found_by)
{
	int round;
	int err = 0;

	alarm(25);
	for (round = 0; !err && round < 3; round++)
		err = join_once(found_by, -1, 3);
	/* Rank ends differ: who is early must not end the others. */
	if (!err && getenv("PMI_RANK"))
		ms_sleep(300 * (int)strtol(getenv("PMI_RANK"), NULL, 10));
	return err;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wreath_variables_are_enough),
		cmocka_unit_test(torchrun_on_one_host),
		cmocka_unit_test(torch_without_torchrun_on_localhost),
		cmocka_unit_test(torchrun_on_several_hosts),
		cmocka_unit_test(open_mpi_on_one_host),
		cmocka_unit_test(no_launcher_is_one_rank),
		cmocka_unit_test(one_rank_of_a_launcher_needs_nobody),
		cmocka_unit_test(what_is_missing_or_wrong_is_named),
		cmocka_unit_test(mpich_starts_ranks),
		cmocka_unit_test(open_mpi_starts_ranks),
	};

	self = argv[0];
	if (argc == 3 && !strcmp(argv[1], "--rank"))
		return be_a_rank(argv[2]);
	alarm(60);
	return cmocka_run_group_tests_name("boot/discover", tests, NULL, NULL);
}
