/* SPDX-License-Identifier: MIT */
/* Who comes to the chair of a survey, and is shown to a seat. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sock.h"
#include "survey.h"

/* A member needs a round trip from its hello to its list; strangers stay. */
#define SLOW_MS 200

/*
 * A free place, else that of the oldest that has not said a word, else of one
 * that was slow to go on; NULL: the rest waits outside.
 */
static struct boot_survey_guest *find_place(struct boot_survey *survey)
{
	uint64_t fresh_ns = base_now_ns() +
			    (BOOT_AUTH_MS - SLOW_MS) * UINT64_C(1000000);
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
	if (oldest[0])
		return oldest[0];
	return oldest[1]->auth.deadline_ns < fresh_ns ? oldest[1] : NULL;
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
	boot_unseat(seat, BOOT_SEAT_HERE);
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

int boot_lobby_let_in(struct boot_survey *survey)
{
	struct boot *boot = survey->boot;
	int n;

	for (n = 0; n < BOOT_SURVEY_GUESTS; n++) {
		struct boot_survey_guest *guest = find_place(survey);
		int fd;

		if (!guest)
			break;
		fd = boot_sock_accept(boot->listener);
		if (fd == -EMFILE || fd == -ENFILE)
			return boot_survey_no_socket(survey, fd);
		if (fd < 0)
			break;
		boot_sock_close(&guest->talk.fd);
		guest->talk.fd = fd;
		guest->talk.have = 0;
		boot_sock_tune(fd, BOOT_AUTH_MS);
		boot_auth_server(&guest->auth, fd, BOOT_TO_CHAIR, boot->token);
		/* Who has said hello by now is not the first to be evicted. */
		serve_guest(survey, guest);
	}
	return 0;
}

void boot_lobby_serve(struct boot_survey *survey)
{
	int i;

	for (i = 0; i < BOOT_SURVEY_GUESTS; i++)
		serve_guest(survey, &survey->guests[i]);
}
