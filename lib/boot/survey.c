/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "sock.h"
#include "survey.h"

/* The chair's own deadline comes first: it knows who is missing. */
#define GRACE_MS 1000

static uint64_t after(uint64_t ns, int64_t ms)
{
	return ns + (uint64_t)ms * 1000000;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- a member ---- */

/* True when the chair's socket has one of @events. */
static bool await(struct boot_survey *survey, short events,
		  uint64_t deadline_ns)
{
	while (!boot_sock_wait(survey->chair.fd, events,
			       sooner(deadline_ns,
				      after(base_now_ns(), BOOT_STOPPED_MS))))
		if (boot_survey_stopped(survey) ||
		    !boot_sock_ms_left(deadline_ns))
			return false;
	return true;
}

int boot_survey_connect(struct boot_survey *survey, const struct boot_addr *to)
{
	uint64_t deadline_ns = after(base_now_ns(), BOOT_SILENT_MS);

	survey->chair.fd = boot_sock_connect(to);
	if (survey->chair.fd < 0)
		return survey->chair.fd;
	if (!await(survey, POLLOUT, deadline_ns))
		return -ETIMEDOUT;
	return boot_sock_connected(survey->chair.fd);
}

/* It lives; it speaks once it comes to be the chair, or it dies. */
static int speak_to(struct boot_survey *survey, uint64_t deadline_ns)
{
	struct boot *boot = survey->boot;
	struct boot_talk *chair = &survey->chair;
	enum boot_auth_state state;
	struct boot_auth auth;
	int got = 0;

	boot_sock_tune(chair->fd, BOOT_AUTH_MS);
	boot_auth_client(&auth, chair->fd, BOOT_TO_CHAIR, boot->rank,
			 boot->token);
	while ((state = boot_auth_step(&auth, boot->secret)) !=
	       BOOT_AUTH_DONE) {
		if (state == BOOT_AUTH_STRANGER ||
		    state == BOOT_AUTH_BAD_PROOF)
			return -EPIPE;
		if (!await(survey, boot_auth_events(&auth), deadline_ns))
			return -ETIMEDOUT;
	}
	if (!boot_talk_send(chair, BOOT_SURVIVOR, 0, survey->left_out,
			    survey->map_bytes))
		return -EPIPE;
	chair->have = 0;
	while (!got) {
		got = boot_talk_read(survey, chair);
		if (!got && !await(survey, POLLIN, deadline_ns))
			return -ETIMEDOUT;
	}
	return got < 0 ? got : 0;
}

/* What the chair has decided; *result is an error of all. */
static int take_decision(struct boot_survey *survey, int *result)
{
	struct boot *boot = survey->boot;
	const unsigned char *in = boot_talk_payload(&survey->chair);
	const struct boot_head *head = &survey->chair.head;
	int i;

	if (head->type == BOOT_REFUSED && head->value) {
		*result = boot_talk_error(&survey->chair);
		return 0;
	}
	if (head->type != BOOT_SURVIVORS ||
	    head->bytes != sizeof(survey->id) + survey->map_bytes)
		return -EBADMSG;
	memcpy(&survey->id, in, sizeof(survey->id));
	memcpy(survey->survivors, in + sizeof(survey->id), survey->map_bytes);
	if (!boot_map_has(survey->survivors, boot->rank))
		return -EBADMSG;
	for (i = 0; i < boot->n_ranks; i++) {
		bool lives = boot_map_has(survey->survivors, i);

		survey->n_ranks += lives;
		survey->rank += lives && i < boot->rank;
	}
	*result = 0;
	return 0;
}

static int say_late(struct boot_survey *survey, int rank)
{
	char name[128];
	char within[24];

	boot_name(survey->boot, rank, name);
	boot_text_ms(survey->args.timeout_ms, within);
	return base_error(WREATH_ETIMEOUT,
			  "%s lives, and did not come within %s to where rank "
			  "%d looks for the ranks that are left; every rank "
			  "that lives must call wreath_comm_shrink()",
			  name, within, survey->boot->rank);
}

/* 0: *result is what came of it; -ECONNREFUSED: @rank is dead. */
static int try_rank(struct boot_survey *survey, int rank, int *result)
{
	uint64_t deadline_ns = after(survey->deadline_ns, GRACE_MS);
	int pause_ms = 1;

	for (;;) {
		int err = boot_survey_connect(survey,
					      &survey->boot->addrs[rank]);

		*result = 0;
		if (err && boot_errno_is_ours(err))
			*result = boot_survey_no_socket(survey, err);
		else if (err && !boot_survey_stopped(survey))
			return -ECONNREFUSED;
		if (!err)
			err = speak_to(survey, deadline_ns);
		if (!err)
			err = take_decision(survey, result);
		if (!err || *result)
			return 0;
		boot_sock_close(&survey->chair.fd);
		if (survey->stopped)
			*result = survey->stopped;
		else if (!boot_sock_ms_left(deadline_ns))
			*result = say_late(survey, rank);
		if (*result)
			return 0;
		/* It is not there yet, or no more, or stormed by strangers. */
		poll(NULL, 0, pause_ms);
		if (pause_ms < BOOT_AGAIN_MS)
			pause_ms *= 2;
	}
}

static bool same_host(const struct boot_addr *a, const struct boot_addr *b)
{
	return a->family == b->family && !memcmp(a->ip, b->ip, sizeof(a->ip));
}

static int find_chair(struct boot_survey *survey)
{
	struct boot *boot = survey->boot;
	const struct boot_addr *silent = NULL;
	int rank;

	for (rank = 0; rank < boot->rank; rank++) {
		uint64_t start_ns = base_now_ns();
		int result;
		int err;

		if (survey->args.left_out[rank])
			continue;
		/* To wait for a dead host once is enough. */
		if (silent && same_host(silent, &boot->addrs[rank]))
			continue;
		err = try_rank(survey, rank, &result);
		if (!err)
			return result;
		boot_sock_close(&survey->chair.fd);
		if (base_now_ns() >= after(start_ns, BOOT_SILENT_MS))
			silent = &boot->addrs[rank];
	}
	survey->is_chair = true;
	return boot_chair(survey);
}

/* ---- the door ---- */

/* From boot's thread to this one, and back. */
static void own_listener(struct boot *boot, bool is_ours)
{
	boot_lock(boot);
	boot->is_surveyed = is_ours;
	boot_unlock(boot);
	boot_sock_event_set(boot->wake);
}

static void survey_free(struct boot_survey *survey)
{
	own_listener(survey->boot, false);
	boot_chair_release(survey);
	boot_sock_close(&survey->chair.fd);
	base_free(survey->chair.in);
	base_free(survey->left_out);
	base_free(survey->survivors);
	sodium_memzero(&survey->id, sizeof(survey->id));
	base_free(survey);
}

static int survey_new(struct boot *boot, const struct boot_survey_args *args,
		      struct boot_survey **out)
{
	struct boot_survey *survey = base_alloc(1, sizeof(*survey));
	size_t bytes;
	int i;

	if (!survey)
		return WREATH_ENOMEM;
	survey->boot = boot;
	survey->args = *args;
	survey->deadline_ns = after(base_now_ns(), args->timeout_ms);
	survey->chair.fd = -1;
	survey->map_bytes = ((size_t)boot->n_ranks + 7) / 8;
	bytes = sizeof(survey->id) + survey->map_bytes;
	if (bytes < BOOT_SURVEY_TEXT)
		bytes = BOOT_SURVEY_TEXT;
	survey->frame_bytes = BOOT_HEAD_BYTES + bytes;
	survey->chair.in = base_alloc(1, survey->frame_bytes);
	survey->left_out = base_alloc(1, survey->map_bytes);
	survey->survivors = base_alloc(1, survey->map_bytes);
	if (!survey->chair.in || !survey->left_out || !survey->survivors) {
		survey_free(survey);
		return WREATH_ENOMEM;
	}
	for (i = 0; i < boot->n_ranks; i++)
		if (args->left_out[i])
			boot_map_add(survey->left_out, i);
	*out = survey;
	return 0;
}

int boot_survey_start(struct boot *boot, const struct boot_survey_args *args,
		      struct boot_survey **out)
{
	struct boot_survey *survey;
	int err = survey_new(boot, args, &survey);

	if (err)
		return err;
	own_listener(boot, true);
	err = find_chair(survey);
	if (err) {
		survey_free(survey);
		return err;
	}
	*out = survey;
	return 0;
}

const struct wreath_unique_id *boot_survey_id(const struct boot_survey *survey,
					      int *rank, int *n_ranks)
{
	*rank = survey->rank;
	*n_ranks = survey->n_ranks;
	return &survey->id;
}

static int lost_chair(const struct boot_survey *survey)
{
	return base_error(WREATH_EPEER,
			  "the lowest rank of those that were left died or "
			  "gave up while rank %d joined them",
			  survey->boot->rank);
}

int boot_survey_watch(void *arg)
{
	struct boot_survey *survey = arg;
	struct pollfd pfd = {.fd = survey->chair.fd, .events = POLLIN};

	if (boot_survey_stopped(survey))
		return survey->stopped;
	if (survey->is_chair)
		return boot_chair_watch(survey);
	/* It speaks last: what can be read is its end, or that of all. */
	return poll(&pfd, 1, 0) > 0 ? lost_chair(survey) : 0;
}

static int member_end(struct boot_survey *survey, int err,
		      const struct boot *joined)
{
	struct boot_talk *chair = &survey->chair;
	uint64_t deadline_ns = after(survey->deadline_ns, GRACE_MS);
	int got = 0;

	snprintf(survey->text, sizeof(survey->text), "%.500s",
		 err ? base_error_text() : "");
	if (!boot_talk_send(chair, BOOT_OUTCOME, -err, survey->text,
			    strlen(survey->text)))
		got = -EPIPE;
	while (!got) {
		got = boot_talk_read(survey, chair);
		if (!got && !await(survey, POLLIN, deadline_ns))
			got = -ETIMEDOUT;
	}
	if (survey->stopped)
		return survey->stopped;
	if (got > 0 && chair->head.type == BOOT_OUTCOME)
		return boot_talk_error(chair);
	if (!err && joined && boot_settle(survey, joined))
		return survey->stopped;
	lost_chair(survey);
	return WREATH_EAGAIN;
}

int boot_survey_end(struct boot_survey *survey, int64_t timeout_ms, int err,
		    const struct boot *joined)
{
	survey->deadline_ns = after(base_now_ns(), timeout_ms);
	err = survey->is_chair ? boot_chair_end(survey, err)
			       : member_end(survey, err, joined);
	survey_free(survey);
	return err;
}
