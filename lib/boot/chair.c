/* SPDX-License-Identifier: MIT */
/* The chair of a survey: hears of every rank above it, and decides. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sock.h"
#include "survey.h"

/* A rank that lives but ended our knock is knocked at again after so long. */
#define AGAIN_MS 10

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

static void unseat(struct boot_seat *seat, enum boot_seat_state state)
{
	boot_sock_close(&seat->talk.fd);
	seat->state = state;
	seat->until_ns = from_now(AGAIN_MS);
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
	unseat(seat, BOOT_SEAT_GONE);
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
			unseat(seat, BOOT_SEAT_GONE);
		else
			seat->state = BOOT_SEAT_LIVES;
		return 0;
	case BOOT_SEAT_LIVES:
	case BOOT_SEAT_HERE:
		/* Nobody may speak now: this is an end, or a breach. */
		if (revents)
			unseat(seat, BOOT_SEAT_UNKNOWN);
		return 0;
	case BOOT_SEAT_OUT:
	case BOOT_SEAT_GONE:
		break;
	}
	return 0;
}

/* ---- who comes ---- */

/* A free place, else that of the oldest that has not said a word, or has. */
static struct boot_survey_guest *find_place(struct boot_survey *survey)
{
	struct boot_survey_guest *oldest[2] = {NULL, NULL};
	int i;

	for (i = 0; i < BOOT_SURVEY_GUESTS; i++) {
		struct boot_survey_guest *guest = &survey->guests[i];
		bool promising = boot_auth_is_promising(&guest->auth);

		if (guest->talk.fd < 0)
			return guest;
		if (!oldest[promising] ||
		    guest->auth.deadline_ns <
			    oldest[promising]->auth.deadline_ns)
			oldest[promising] = guest;
	}
	return oldest[0] ? oldest[0] : oldest[1];
}

static int let_in(struct boot_survey *survey)
{
	struct boot *boot = survey->boot;
	int n;

	for (n = 0; n < BOOT_SURVEY_GUESTS; n++) {
		struct boot_survey_guest *guest;
		int fd = boot_sock_accept(boot->listener);

		if (fd == -EMFILE || fd == -ENFILE)
			return boot_survey_no_socket(survey, fd);
		if (fd < 0)
			break;
		guest = find_place(survey);
		boot_sock_close(&guest->talk.fd);
		guest->talk.fd = fd;
		guest->talk.have = 0;
		boot_sock_tune(fd, BOOT_AUTH_MS);
		boot_auth_server(&guest->auth, fd, BOOT_TO_CHAIR, boot->token);
	}
	return 0;
}

/*
 * Told when all have come: else some would be gone by then, and the rest would
 * shrink without them.
 */
static void note_other_list(struct boot_survey *survey, int rank)
{
	char mine[128], theirs[128];

	if (survey->worst)
		return;
	boot_name(survey->boot, survey->boot->rank, mine);
	boot_name(survey->boot, rank, theirs);
	survey->worst = base_error(WREATH_EMISMATCH,
				   "%s and %s leave out different ranks; every "
				   "rank must give the same list",
				   mine, theirs);
	snprintf(survey->text, sizeof(survey->text), "%.500s",
		 base_error_text());
}

/* The guest has said who it is, and proved it. */
static void seat_guest(struct boot_survey *survey,
		      struct boot_survey_guest *guest)
{
	static const char text[] = "this rank is left out by the others";
	uint32_t rank = guest->auth.rank;
	struct boot_talk *talk = &guest->talk;
	struct boot_seat *seat;

	if (rank >= (uint32_t)survey->boot->n_ranks ||
	    (int)rank <= survey->boot->rank ||
	    talk->head.type != BOOT_SURVIVOR ||
	    talk->head.bytes != survey->map_bytes) {
		boot_sock_close(&talk->fd);
		return;
	}
	seat = &survey->seats[rank];
	if (seat->state == BOOT_SEAT_OUT) {
		boot_talk_send(talk, BOOT_REFUSED, -WREATH_EMISMATCH, text,
			       strlen(text));
		boot_sock_close(&talk->fd);
		return;
	}
	unseat(seat, BOOT_SEAT_HERE);
	seat->talk.fd = talk->fd;
	seat->talk.have = 0;
	talk->fd = -1;
	if (memcmp(boot_talk_payload(talk), survey->left_out,
		   survey->map_bytes))
		note_other_list(survey, (int)rank);
}

static void serve_guest(struct boot_survey *survey,
			struct boot_survey_guest *guest)
{
	int got;

	if (guest->talk.fd < 0)
		return;
	switch (boot_auth_step(&guest->auth, survey->boot->secret)) {
	case BOOT_AUTH_DONE:
		got = boot_talk_read(survey, &guest->talk);
		if (got > 0)
			seat_guest(survey, guest);
		else if (got < 0)
			boot_sock_close(&guest->talk.fd);
		break;
	case BOOT_AUTH_STRANGER:
	case BOOT_AUTH_BAD_PROOF:
		boot_sock_close(&guest->talk.fd);
		break;
	case BOOT_AUTH_SENDING:
	case BOOT_AUTH_READING:
		break;
	}
	if (guest->auth.deadline_ns <= base_now_ns())
		boot_sock_close(&guest->talk.fd);
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
		 AGAIN_MS) < 0)
		return 0;
	for (i = 0; i < n && !err; i++)
		err = serve_seat(survey, i, seats[i].revents);
	if (!err && survey->polled[0].revents)
		err = let_in(survey);
	for (i = 0; i < BOOT_SURVEY_GUESTS && !err; i++)
		serve_guest(survey, &survey->guests[i]);
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
