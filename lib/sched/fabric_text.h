/* SPDX-License-Identifier: MIT */
/* Reading of statements: what fabric_text.c offers to fabric_read.c. */
#ifndef SCHED_FABRIC_TEXT_H
#define SCHED_FABRIC_TEXT_H

#include "fabric.h"

/* Longer words are cut in messages, and are no number. */
#define WORD_SHOWN 33

struct reader {
	const char *name;  /* of the text, for messages */
	const char *start; /* of the line */
	const char *at;
	int line;
};

struct word {
	const char *at;
	size_t length; /* 0: the statement ends here */
};

/* The next word of the line; false at its end. */
bool fabric_next(struct reader *reader, struct word *word);

/* "name:line:column: text" */
int fabric_refuse(const struct reader *reader, const struct word *word,
		  const char *fmt, ...)
	__attribute__((format(printf, 3, 4), cold));

/* A word's beginning, as it can be shown. */
const char *fabric_shown(const struct word *word, char out[WORD_SHOWN]);

/* Which of the words (NULL ends them) it is, or WREATH_EINVAL. */
int fabric_choose(const struct reader *reader, const struct word *word,
		  const char *what, const char *const *words);

/* The next word as a value. */
int fabric_int(struct reader *reader, const char *what, int min, int max,
	       int *out);
int fabric_rate(struct reader *reader, const char *what, uint64_t *out);
int fabric_time(struct reader *reader, const char *what, uint64_t *out);

#endif
