/* SPDX-License-Identifier: MIT */
/* The chair of a survey: hears of every rank above it, and decides. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sock.h"
#include "survey.h"

/* How often deadlines are looked at. */
#define TURN_MS 10

static uint64_t from_now(int ms)
{
	return base_now_ns() + (uint64_t)ms * 1000000;
}

/* ---- the seats ---- */

static int chair_init(struct boot_survey *survey)
{
	size_t n = (size_t)survey->boot->n_ranks;
	size_t bytes = survey->frame_bytes;
	size_t i;

	survey->seats = base_alloc(n, sizeof(*survey->seats));
	survey->guests =
		base_alloc(BOOT_SURVEY_GUESTS, sizeof(*survey->guests));
	survey->polled = base_alloc(1 + BOOT_SURVEY_GUESTS + n,
				    sizeof(*survey->polled));
	survey->frames = base_alloc(BOOT_SURVEY_GUESTS + n, bytes);
	if (survey->seats)
		for (i = 0; i < n; i++)
			survey->seats[i].talk.fd = -1;
	if (survey->guests)
		for (i = 0; i < BOOT_SURVEY_GUESTS; i++)
			survey->guests[i].talk.fd = -1;
	if (!survey->seats || !survey->guests || !survey->polled ||
	    !survey->frames)
		return WREATH_ENOMEM;
	for (i = 0; i < n; i++) {
		survey->seats[i].talk.in = survey->frames + i * bytes;
		if ((int)i > survey->boot->rank && !survey->args.left_out[i])
			survey->seats[i].state = BOOT_SEAT_UNKNOWN;
	}
	for (i = 0; i < BOOT_SURVEY_GUESTS; i++)
		survey->guests[i].talk.in = survey->frames + (n + i) * bytes;
	return 0;
}

void boot_chair_release(struct boot_survey *survey)
{
	int i;

	for (i = 0; survey->seats && i < survey->boot->n_ranks; i++)
		boot_sock_close(&survey->seats[i].talk.fd);
	for (i = 0; survey->guests && i < BOOT_SURVEY_GUESTS; i++)
		boot_sock_close(&survey->guests[i].talk.fd);
	base_free(survey->seats);
	base_free(survey->guests);
	base_free(survey->polled);
	base_free(survey->frames);
}

void boot_unseat(struct boot_seat *seat, enum boot_seat_state state)
{
	boot_sock_close(&seat->talk.fd);
	seat->state = state;
	seat->until_ns = from_now(BOOT_AGAIN_MS);
}

/* 0, or what this host lacks to find out. */
static int knock(struct boot_survey *survey, int rank)
{
	struct boot_seat *seat = &survey->seats[rank];

	seat->talk.fd = boot_sock_connect(&survey->boot->addrs[rank]);
	if (seat->talk.fd >= 0) {
		seat->state = BOOT_SEAT_KNOCKED;
		seat->until_ns = from_now(BOOT_SILENT_MS);
		return 0;
	}
	if (boot_errno_is_ours(seat->talk.fd))
		return boot_survey_no_socket(survey, seat->talk.fd);
	boot_unseat(seat, BOOT_SEAT_GONE);
	return 0;
}

static int serve_seat(struct boot_survey *survey, int rank, short revents)
{
	struct boot_seat *seat = &survey->seats[rank];
	bool is_late = seat->until_ns <= base_now_ns();
	int err;

	switch (seat->state) {
	case BOOT_SEAT_UNKNOWN:
		return is_late ? knock(survey, rank) : 0;
	case BOOT_SEAT_KNOCKED:
		if (!revents && !is_late)
			return 0;
		err = revents ? boot_sock_connected(seat->talk.fd)
			      : -ETIMEDOUT;
		if (err && boot_errno_is_ours(err))
			return boot_survey_no_socket(survey, err);
		if (err)
			boot_unseat(seat, BOOT_SEAT_GONE);
		else
			seat->state = BOOT_SEAT_LIVES;
		return 0;
	case BOOT_SEAT_LIVES:
	case BOOT_SEAT_HERE:
		/*
		 * Nobody may speak now: it has died, or sent us away since it
		 * is not in the survey yet, or this is a breach.
		 */
		if (revents)
			boot_unseat(seat, BOOT_SEAT_UNKNOWN);
		return 0;
	case BOOT_SEAT_OUT:
	case BOOT_SEAT_GONE:
		break;
	}
	return 0;
}

/* ---- waiting ---- */

static bool is_open(const struct boot_seat *seat)
{
	return seat->state == BOOT_SEAT_UNKNOWN ||
	       seat->state == BOOT_SEAT_KNOCKED ||
	       seat->state == BOOT_SEAT_LIVES;
}

static bool all_are_known(const struct boot_survey *survey)
{
	int i;

	for (i = 0; i < survey->boot->n_ranks; i++)
		if (is_open(&survey->seats[i]))
			return false;
	return true;
}

static int turn(struct boot_survey *survey)
{
	struct pollfd *guests = survey->polled + 1;
	struct pollfd *seats = guests + BOOT_SURVEY_GUESTS;
	int n = survey->boot->n_ranks;
	int err = 0;
	int i;

	survey->polled[0] = (struct pollfd){.fd = survey->boot->listener,
					    .events = POLLIN};
	for (i = 0; i < BOOT_SURVEY_GUESTS; i++)
		guests[i] = (struct pollfd){
			.fd = survey->guests[i].talk.fd,
			.events = boot_auth_events(&survey->guests[i].auth),
		};
	for (i = 0; i < n; i++)
		seats[i] = (struct pollfd){
			.fd = survey->seats[i].talk.fd,
			.events = survey->seats[i].state == BOOT_SEAT_KNOCKED
					  ? POLLOUT : POLLIN,
		};
	if (poll(survey->polled, (nfds_t)(1 + BOOT_SURVEY_GUESTS + n),
		 TURN_MS) < 0)
		return 0;
	for (i = 0; i < n && !err; i++)
		err = serve_seat(survey, i, seats[i].revents);
	if (!err && survey->polled[0].revents)
		err = boot_lobby_let_in(survey);
	if (!err)
		boot_lobby_serve(survey);
	return err;
}

static int say_late(const struct boot_survey *survey)
{
	char name[128] = "";
	char within[24];
	int n = 0;
	int i;

	for (i = 0; i < survey->boot->n_ranks; i++)
		if (is_open(&survey->seats[i]) && !n++)
			boot_name(survey->boot, i, name);
	boot_text_ms(survey->args.timeout_ms, within);
	return base_error(WREATH_ETIMEOUT,
			  "%s%s not come within %s, but lives; every rank that "
			  "lives must call wreath_comm_shrink(), or be left "
			  "out by all", name,
			  n > 1 ? " and others have" : " has", within);
}

static int wait_for_all(struct boot_survey *survey)
{
	int err = 0;

	while (!err && !all_are_known(survey)) {
		err = turn(survey);
		if (!err && boot_survey_stopped(survey))
			err = survey->stopped;
		if (!err && !boot_sock_ms_left(survey->deadline_ns))
			err = say_late(survey);
	}
	if (survey->worst)
		err = base_error_again(survey->worst, survey->text);
	return err;
}

/* ---- deciding ---- */

static void tell_all(struct boot_survey *survey, enum boot_frame_type type,
		     int value, const void *payload, size_t bytes)
{
	int i;

	for (i = 0; i < survey->boot->n_ranks; i++)
		if (survey->seats[i].state == BOOT_SEAT_HERE &&
		    survey->seats[i].talk.fd >= 0)
			boot_talk_send(&survey->seats[i].talk, type, value,
				       payload, bytes);
}

static int decide(struct boot_survey *survey)
{
	unsigned char *frame = boot_talk_payload(&survey->chair);
	size_t id_bytes = sizeof(survey->id);
	int err = 0;
	int i;

	boot_map_add(survey->survivors, survey->boot->rank);
	survey->n_ranks = 1;
	for (i = 0; i < survey->boot->n_ranks; i++) {
		if (survey->seats[i].state != BOOT_SEAT_HERE)
			continue;
		boot_map_add(survey->survivors, i);
		survey->n_ranks++;
	}
	if (survey->n_ranks > 1)
		err = boot_root_start_beside(survey->boot,
					     survey->args.idle_ms, &survey->id);
	if (err)
		return err;
	memcpy(frame, &survey->id, id_bytes);
	memcpy(frame + id_bytes, survey->survivors, survey->map_bytes);
	/* Whoever does not get it has died, which shows soon. */
	tell_all(survey, BOOT_SURVIVORS, 0, frame,
		 id_bytes + survey->map_bytes);
	return 0;
}

int boot_chair(struct boot_survey *survey)
{
	int err = chair_init(survey);

	if (!err)
		err = wait_for_all(survey);
	if (!err)
		err = decide(survey);
	if (!err || !survey->seats)
		return err;
	snprintf(survey->text, sizeof(survey->text), "%.500s",
		 base_error_text());
	tell_all(survey, BOOT_REFUSED, -err, survey->text,
		 strlen(survey->text));
	return base_error_again(err, survey->text);
}
