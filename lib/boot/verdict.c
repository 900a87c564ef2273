/* SPDX-License-Identifier: MIT */
/* The end of a survey: how the joining of the survivors went for all. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "sock.h"
#include "survey.h"

/* One that another survey may mend weighs less than one that it may not. */
static int weight(int err)
{
	if (!err)
		return 0;
	return err == WREATH_EPEER || err == WREATH_ENET ||
			       err == WREATH_ETIMEOUT || err == WREATH_EAGAIN
		       ? 1 : 2;
}

/* The worst error is that of all; of two alike, the first. */
static void note(struct boot_survey *survey, int err)
{
	if (weight(err) <= weight(survey->worst))
		return;
	survey->worst = err;
	snprintf(survey->text, sizeof(survey->text), "%.500s",
		 base_error_text());
}

static void ends(struct boot_survey *survey, struct boot_seat *seat, int err)
{
	seat->has_ended = true;
	note(survey, err);
}

static void hear(struct boot_survey *survey, int rank)
{
	struct boot_seat *seat = &survey->seats[rank];
	char name[128];
	int got;

	if (seat->state != BOOT_SEAT_HERE || seat->has_ended)
		return;
	got = boot_talk_read(survey, &seat->talk);
	if (!got)
		return;
	if (got > 0 && seat->talk.head.type == BOOT_OUTCOME) {
		ends(survey, seat, boot_talk_error(&seat->talk));
		return;
	}
	boot_sock_close(&seat->talk.fd);
	boot_name(survey->boot, rank, name);
	ends(survey, seat,
	     base_error(WREATH_EPEER,
			"%s died or gave up while the ranks that were left "
			"joined", name));
}

int boot_chair_watch(struct boot_survey *survey)
{
	int i;

	for (i = 0; i < survey->boot->n_ranks && !survey->worst; i++)
		hear(survey, i);
	return survey->worst ? base_error_again(survey->worst, survey->text)
			     : 0;
}

/* Hear whoever has something to say; false when all have said it. */
static bool hear_more(struct boot_survey *survey)
{
	int n_waiting = 0;
	int i;

	for (i = 0; i < survey->boot->n_ranks; i++) {
		const struct boot_seat *seat = &survey->seats[i];

		if (seat->state != BOOT_SEAT_HERE || seat->has_ended)
			continue;
		survey->polled[n_waiting++] = (struct pollfd){
			.fd = seat->talk.fd, .events = POLLIN};
	}
	if (!n_waiting)
		return false;
	poll(survey->polled, (nfds_t)n_waiting, BOOT_STOPPED_MS);
	for (i = 0; i < survey->boot->n_ranks; i++)
		hear(survey, i);
	return true;
}

static void note_silent(struct boot_survey *survey)
{
	char name[128];
	int i;

	for (i = 0; i < survey->boot->n_ranks; i++) {
		struct boot_seat *seat = &survey->seats[i];

		if (seat->state != BOOT_SEAT_HERE || seat->has_ended)
			continue;
		boot_name(survey->boot, i, name);
		ends(survey, seat,
		     base_error(WREATH_ETIMEOUT,
				"%s fell silent while the ranks that were "
				"left joined", name));
	}
}

int boot_chair_end(struct boot_survey *survey, int err)
{
	int i;

	note(survey, err);
	while (!survey->stopped && boot_sock_ms_left(survey->deadline_ns) &&
	       hear_more(survey))
		if (boot_survey_stopped(survey))
			note(survey, survey->stopped);
	note_silent(survey);
	err = survey->worst;
	if (weight(err) == 1)
		err = WREATH_EAGAIN;
	for (i = 0; i < survey->boot->n_ranks; i++) {
		const struct boot_seat *seat = &survey->seats[i];

		if (seat->state == BOOT_SEAT_HERE && seat->talk.fd >= 0)
			boot_talk_send(&seat->talk, BOOT_OUTCOME, -err,
				       survey->text, strlen(survey->text));
	}
	return err ? base_error_again(err, survey->text) : 0;
}
