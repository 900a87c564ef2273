/* SPDX-License-Identifier: MIT */
/*
 * Reading of statements, a line each: of a fabric, and of a tuning file.  Words
 * are looked at in place, never copied, since the text may come from anyone;
 * what is not understood is refused with its place and the nearest word.
 */
#ifndef SCHED_WORDS_H
#define SCHED_WORDS_H

#include "base/base.h"

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

/* The next word of the line; false at its end, or where a comment begins. */
bool words_next(struct reader *reader, struct word *word);

/* On to the next line; false at the end of the text. */
bool words_line(struct reader *reader);

/* "name:line:column: text" */
int words_refuse(const struct reader *reader, const struct word *word,
		 const char *fmt, ...)
	__attribute__((format(printf, 3, 4), cold));

/* A word's beginning, as it can be shown. */
const char *words_shown(const struct word *word, char out[WORD_SHOWN]);

/* Which of the words (NULL ends them) it is, or WREATH_EINVAL. */
int words_choose(const struct reader *reader, const struct word *word,
		 const char *what, const char *const *words);

#endif
