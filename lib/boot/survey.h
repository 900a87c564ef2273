/* SPDX-License-Identifier: MIT */
/*
 * A survey from inside: who is left, found without the tree.
 *
 * Every rank keeps its listener for as long as it has not closed, and knows
 * that of every other; so whoever connects learns whether the rank lives: a
 * dead process has no listener, and its connections end.  A rank goes to those
 * below it, the lowest first, and past those that are dead; the first that
 * lives is the chair, and who finds nobody is the chair itself.  The chair
 * waits for all above it, and knocks where somebody has not come yet.
 *
 *	member: the ranks that it leaves out
 *	chair: id and survivors, or why there is none
 *	both: how the joining went; the chair's word counts
 *
 * All of it is done by the thread of the caller, with connections that do not
 * block.
 */
#ifndef BOOT_SURVEY_H
#define BOOT_SURVEY_H

#include <poll.h>

#include "tree.h"

/*
 * A host that does not answer for so long is dead.  The kernel repeats a lost
 * request to connect after a second: that must be in time.
 */
#define BOOT_SILENT_MS 1500

/*
 * A rank that lives sends away who comes before it is in the survey itself;
 * it is asked again after so long.
 */
#define BOOT_AGAIN_MS 50

/* How often args.stopped is asked. */
#define BOOT_STOPPED_MS 20

#define BOOT_SURVEY_TEXT 512

/* Members that have not proved themselves yet, and strangers. */
#define BOOT_SURVEY_GUESTS 64

/* One end of a connection that speaks in frames. */
struct boot_talk {
	int fd;
	size_t have;
	struct boot_head head;
	unsigned char *in; /* survey->frame_bytes */
};

enum boot_seat_state {
	BOOT_SEAT_OUT,     /* left out, or not the chair's to care for */
	BOOT_SEAT_UNKNOWN, /* to be knocked at */
	BOOT_SEAT_KNOCKED,
	BOOT_SEAT_LIVES, /* the knock was heard: to come, or to die */
	BOOT_SEAT_HERE,
	BOOT_SEAT_GONE,
};

/* What the chair knows of a rank. */
struct boot_seat {
	enum boot_seat_state state;
	uint64_t until_ns; /* UNKNOWN: to knock at; KNOCKED: silent then */
	struct boot_talk talk;
	bool has_ended; /* it told its outcome, or died */
};

struct boot_survey_guest {
	struct boot_auth auth;
	struct boot_talk talk;
};

struct boot_survey {
	struct boot *boot;
	struct boot_survey_args args;
	uint64_t deadline_ns;
	int stopped; /* what args.stopped gave */
	int rank, n_ranks; /* among the survivors */
	struct wreath_unique_id id;
	size_t map_bytes, frame_bytes;
	unsigned char *left_out; /* a bit a rank */
	unsigned char *survivors;
	bool is_chair;
	struct boot_talk chair; /* a member's */
	/* The chair's. */
	struct boot_seat *seats; /* [boot->n_ranks] */
	struct boot_survey_guest *guests; /* [BOOT_SURVEY_GUESTS] */
	struct pollfd *polled;
	unsigned char *frames; /* all talk.in */
	int worst;                   /* error of the joining, of any rank */
	char text[BOOT_SURVEY_TEXT]; /* what is said to all */
};

static inline bool boot_map_has(const unsigned char *map, int rank)
{
	return map[rank / 8] >> rank % 8 & 1;
}

static inline void boot_map_add(unsigned char *map, int rank)
{
	map[rank / 8] = (unsigned char)(map[rank / 8] | 1 << rank % 8);
}

/* ---- talk.c ---- */

/* 1: talk->head and the payload behind it in talk->in; 0: not yet; or a
 * negative errno.  The next call begins another frame. */
int boot_talk_read(const struct boot_survey *survey, struct boot_talk *talk);
unsigned char *boot_talk_payload(struct boot_talk *talk);

/* Frames are few and small: the socket takes them whole, or is broken. */
bool boot_talk_send(const struct boot_talk *talk, enum boot_frame_type type,
		    int value, const void *payload, size_t bytes);

/* An outcome or a refusal: its error, with the text set. */
int boot_talk_error(struct boot_talk *talk);

/* args.stopped has ended it: survey->stopped. */
bool boot_survey_stopped(struct boot_survey *survey);

/* True for errors that are this host's own and say nothing of the peer. */
bool boot_errno_is_ours(int err);
int boot_survey_no_socket(const struct boot_survey *survey, int err);

/* ---- survey.c ---- */

/* Open chair.fd: 0, or a negative errno, -ETIMEDOUT also when stopped. */
int boot_survey_connect(struct boot_survey *survey, const struct boot_addr *to);

/* ---- settle.c ---- */

/* The chair has died: do all go on with what they @joined?  Takes a moment. */
bool boot_settle(struct boot_survey *survey, const struct boot *joined);

/* ---- chair.c ---- */

/* Wait for all, decide, and tell them. */
int boot_chair(struct boot_survey *survey);
void boot_chair_release(struct boot_survey *survey);

/* Close what there is of @seat, which is to be looked at soon. */
void boot_unseat(struct boot_seat *seat, enum boot_seat_state state);

/* ---- lobby.c ---- */

/* Accept who waits: 0, or what this host lacks for that. */
int boot_lobby_let_in(struct boot_survey *survey);
/* Go on with all who have not got a seat. */
void boot_lobby_serve(struct boot_survey *survey);

/* ---- verdict.c ---- */

/* 0, or the error of the first that is seen to have died or failed. */
int boot_chair_watch(struct boot_survey *survey);
/* Hear all, and tell them what @err and they make together. */
int boot_chair_end(struct boot_survey *survey, int err);

#endif
