/* SPDX-License-Identifier: MIT */
/*
 * Goal: a survey tells every rank the same; strangers, liars and ranks that
 * give up change nothing but what they must; and all ranks hear one verdict.
 * Method: ranks are threads of this process, some of which close instead, say
 * something else or break off where the test tells them to.
 */
#include "test/unit/boot_ranks.h"

#include "boot/survey.h"
#include "boot/sock.h"

static struct ranks ranks;

/* What a rank is to do; what it found. */
enum role { COMES, CLOSES, STAYS_AWAY, HAS_ANOTHER_SECRET, SPEAKS_NOISE };

static struct {
	enum role role[MAX_RANKS];
	bool left_out[MAX_RANKS];
	int64_t timeout_ms;
	/* How each says that its joining went; BREAKS_OFF: not at all. */
	int outcome[MAX_RANKS];
	int verdict[MAX_RANKS];
	int rank[MAX_RANKS], n_ranks[MAX_RANKS];
	struct wreath_unique_id id[MAX_RANKS];
	bool strangers;
	/* Ranks join by the id; the chair tells the verdict to so many. */
	bool joins, chair_dies;
	int n_told;
} plan;

#define BREAKS_OFF 1

static void plan_init(int n)
{
	memset(&plan, 0, sizeof(plan));
	plan.timeout_ms = 10000;
	assert_int_equal(boot_root_start("lo", 1, &ranks.id), 0);
	(void)n;
}

/* Connections that say nothing, or noise, at every rank's door. */
static void storm(const struct boot *boot)
{
	int fds[64];
	int i, r;

	for (r = 0; r < boot->n_ranks; r++) {
		for (i = 0; i < (int)base_countof(fds); i++) {
			fds[i] = boot_sock_connect(&boot->addrs[r]);
			if (i % 2 && fds[i] >= 0)
				boot_sock_send(fds[i], &plan, 200);
		}
		/* Every fourth stays, to the end of the process. */
		for (i = 0; i < (int)base_countof(fds); i++)
			if (i % 4)
				boot_sock_close(&fds[i]);
	}
}

/* Proves itself, and then says what no member says. */
static int speak_noise(struct boot *boot)
{
	struct boot_auth auth;
	int fd = boot_sock_connect(&boot->addrs[0]);
	unsigned char noise[200];
	int i;

	boot_auth_client(&auth, fd, BOOT_TO_CHAIR, boot->rank, boot->token);
	for (i = 0; i < 500 && boot_auth_step(&auth, boot->secret) !=
				       BOOT_AUTH_DONE; i++)
		ms_sleep(2);
	base_random(noise, sizeof(noise));
	boot_sock_send(fd, noise, sizeof(noise));
	ms_sleep(20);
	boot_sock_close(&fd);
	return 0;
}

/* As the kernel does it for a process that dies. */
static void die(struct boot_survey *survey)
{
	boot_sock_close(&survey->chair.fd);
	boot_chair_release(survey);
	survey->seats = NULL;
	survey->guests = NULL;
	survey->polled = NULL;
	survey->frames = NULL;
	survey->is_chair = false;
	boot_survey_end(survey, 100, 0, NULL);
}

/* The chair tells some that all went well, and dies. */
static void tell_some(struct boot_survey *survey)
{
	int i, told = 0;

	for (i = 1; i < survey->boot->n_ranks && told < plan.n_told; i++) {
		if (survey->seats[i].state != BOOT_SEAT_HERE)
			continue;
		boot_talk_send(&survey->seats[i].talk, BOOT_OUTCOME, 0, "", 0);
		told++;
	}
	die(survey);
}

static int join_and_end(struct a_rank *rank, struct boot_survey *survey)
{
	const struct wreath_unique_id *id;
	int me = rank->rank;
	int n, at;
	struct boot *joined = NULL;
	struct boot_args args;
	int err = plan.outcome[me];

	id = boot_survey_id(survey, &at, &n);
	args = (struct boot_args){.id = id, .rank = at, .n_ranks = n,
				  .join_timeout_ms = 5000,
				  .timeout_ms = 5000};
	assert_int_equal(boot_open(&args, &joined), 0);
	if (err) {
		/* It has failed later, and leaves. */
		boot_close(joined);
		joined = NULL;
		base_error(err, "rank %d could not", me);
	}
	if (survey->is_chair && plan.chair_dies) {
		ms_sleep(50);
		tell_some(survey);
		boot_close(joined);
		boot_close(rank->boot);
		rank->boot = NULL;
		return 0;
	}
	plan.verdict[me] = boot_survey_end(survey, 5000, err, joined);
	/* Those that go on do so for a while. */
	ms_sleep(600);
	boot_close(joined);
	return 0;
}

static int end(struct a_rank *rank, struct boot_survey *survey)
{
	int outcome = plan.outcome[rank->rank];

	if (plan.joins)
		return join_and_end(rank, survey);
	if (outcome == BREAKS_OFF) {
		die(survey);
		return 0;
	}
	if (outcome)
		base_error(outcome, "rank %d could not", rank->rank);
	plan.verdict[rank->rank] = boot_survey_end(survey, 5000, outcome,
						   NULL);
	if (plan.verdict[rank->rank])
		snprintf(rank->text, sizeof(rank->text), "%s",
			 wreath_error_text());
	return 0;
}

static int survey(struct a_rank *rank)
{
	const struct boot_survey_args args = {
		.left_out = plan.left_out,
		.timeout_ms = plan.timeout_ms,
		.idle_ms = 100,
	};
	const struct wreath_unique_id *id;
	struct boot_survey *survey;
	int me = rank->rank;
	int err = boot_all_gather(rank->boot, NULL, 0, NULL);

	if (err)
		return err;
	if (plan.strangers && !me)
		storm(rank->boot);
	switch (plan.role[me]) {
	case CLOSES:
		return 0;
	case STAYS_AWAY:
		ms_sleep((int)plan.timeout_ms + 1500);
		return 0;
	case HAS_ANOTHER_SECRET:
		rank->boot->secret[7] ^= 1;
		break;
	case SPEAKS_NOISE:
		speak_noise(rank->boot);
		break;
	case COMES:
		break;
	}
	err = boot_survey_start(rank->boot, &args, &survey);
	if (err) {
		snprintf(rank->text, sizeof(rank->text), "%s",
			 wreath_error_text());
		return err;
	}
	id = boot_survey_id(survey, &plan.rank[me], &plan.n_ranks[me]);
	plan.id[me] = *id;
	return end(rank, survey);
}

/* Those who came are all who are left, and know it alike. */
static void expect_agreement(void)
{
	int n = 0;
	int first = -1;
	int i;

	for (i = 0; i < ranks.n; i++) {
		if (plan.role[i] == CLOSES || plan.left_out[i])
			continue;
		first = first < 0 ? i : first;
		assert_int_equal(plan.rank[i], n++);
		assert_memory_equal(&plan.id[i], &plan.id[first],
				    sizeof(plan.id[i]));
	}
	for (i = 0; i < ranks.n; i++)
		if (plan.role[i] != CLOSES && !plan.left_out[i])
			assert_int_equal(plan.n_ranks[i], n);
}

static void all_who_are_left_agree(void **state)
{
	int i, r;

	(void)state;
	srand((unsigned int)base_now_ns());
	for (i = 0; i < 12; i++) {
		ranks_init(&ranks, i ? 2 + rand() % 14 : MAX_RANKS, survey);
		plan_init(ranks.n);
		for (r = 0; r < ranks.n - 1; r++) {
			if (rand() % 3 == 0)
				plan.role[r] = CLOSES;
			/* Who is left out may live, and does not call. */
			plan.left_out[r] = plan.role[r] == CLOSES &&
					   rand() % 2;
		}
		run_threads(&ranks, 0, ranks.n);
		all_were_good(&ranks);
		expect_agreement();
	}
}

static void strangers_change_nothing(void **state)
{
	(void)state;
	ranks_init(&ranks, 6, survey);
	plan_init(6);
	plan.strangers = true;
	plan.role[1] = CLOSES;
	plan.role[4] = SPEAKS_NOISE;
	run_threads(&ranks, 0, 6);
	all_were_good(&ranks);
	expect_agreement();
}

static void who_does_not_come_is_named_to_all(void **state)
{
	static const enum role roles[] = {STAYS_AWAY, HAS_ANOTHER_SECRET};
	size_t i;
	int r;

	(void)state;
	for (i = 0; i < base_countof(roles); i++) {
		ranks_init(&ranks, 4, survey);
		plan_init(4);
		plan.timeout_ms = 300;
		plan.role[2] = roles[i];
		run_threads(&ranks, 0, 4);
		for (r = 0; r < 4; r++) {
			if (r == 2)
				continue;
			assert_int_equal(ranks.rank[r].result,
					 WREATH_ETIMEOUT);
			assert_has(ranks.rank[r].text, "rank 2 (host ");
		}
	}
	/* It finds a chair whose proof is none to it, and says so of that. */
	assert_int_equal(ranks.rank[2].result, WREATH_ETIMEOUT);
}

static void expect_verdict(int err, const char *word)
{
	int r;

	for (r = 0; r < ranks.n; r++) {
		if (plan.outcome[r] == BREAKS_OFF)
			continue;
		assert_int_equal(plan.verdict[r], err);
		assert_has(ranks.rank[r].text, word);
	}
}

static void one_verdict_counts_for_all(void **state)
{
	static const struct {
		int outcome[5];
		int verdict;
		const char *word;
	} rows[] = {
		{{0, 0, 0, 0, 0}, 0, ""},
		{{0, 0, WREATH_ENOMEM, 0, 0}, WREATH_ENOMEM, "rank 2 could"},
		{{WREATH_EDEVICE, 0, 0, 0, 0}, WREATH_EDEVICE, "rank 0 could"},
		/* What another survey may mend is not the end. */
		{{0, WREATH_EPEER, 0, 0, 0}, WREATH_EAGAIN, "rank 1 could"},
		{{0, WREATH_EPEER, WREATH_EINVAL, 0, 0}, WREATH_EINVAL,
		 "rank 2 could"},
		{{0, 0, 0, BREAKS_OFF, 0}, WREATH_EAGAIN, "rank 3 (host "},
		{{BREAKS_OFF, 0, 0, 0, 0}, WREATH_EAGAIN, "died or gave up"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < base_countof(rows); i++) {
		ranks_init(&ranks, 5, survey);
		plan_init(5);
		memcpy(plan.outcome, rows[i].outcome, sizeof(rows[i].outcome));
		run_threads(&ranks, 0, 5);
		all_were_good(&ranks);
		expect_verdict(rows[i].verdict, rows[i].word);
	}
}

/*
 * What the chair said to some before it died counts for all: without it one
 * half would go on, and the other would look for survivors among itself.
 */
static void a_chair_that_dies_leaves_all_of_one_mind(void **state)
{
	int told, i;

	(void)state;
	for (told = 0; told < 5; told++) {
		ranks_init(&ranks, 5, survey);
		plan_init(5);
		plan.joins = true;
		plan.chair_dies = true;
		plan.n_told = told;
		run_threads(&ranks, 0, 5);
		for (i = 1; i < 5; i++)
			assert_int_equal(plan.verdict[i], 0);
	}
	/* One has failed: nobody goes on. */
	ranks_init(&ranks, 5, survey);
	plan_init(5);
	plan.joins = true;
	plan.chair_dies = true;
	plan.outcome[3] = WREATH_EPEER;
	run_threads(&ranks, 0, 5);
	for (i = 1; i < 5; i++)
		assert_int_equal(plan.verdict[i], WREATH_EAGAIN);
}

static void no_descriptor_stays_behind(void **state)
{
	int before = count_fds();

	(void)state;
	ranks_init(&ranks, 8, survey);
	plan_init(8);
	plan.role[0] = CLOSES;
	plan.role[3] = CLOSES;
	run_threads(&ranks, 0, 8);
	all_were_good(&ranks);
	/* Roots end by themselves, soon. */
	assert_in_range(count_fds_until(before), 0, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_who_are_left_agree),
		cmocka_unit_test(no_descriptor_stays_behind),
		cmocka_unit_test(strangers_change_nothing),
		cmocka_unit_test(who_does_not_come_is_named_to_all),
		cmocka_unit_test(one_verdict_counts_for_all),
		cmocka_unit_test(a_chair_that_dies_leaves_all_of_one_mind),
	};

	alarm(60);
	return cmocka_run_group_tests_name("boot/survey", tests, NULL, NULL);
}
