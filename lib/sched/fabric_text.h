/* SPDX-License-Identifier: MIT */
/* Reading of values: what fabric_text.c offers to fabric_read.c. */
#ifndef SCHED_FABRIC_TEXT_H
#define SCHED_FABRIC_TEXT_H

#include "words.h"

/* The next word as a value. */
int fabric_int(struct reader *reader, const char *what, int min, int max,
	       int *out);
int fabric_rate(struct reader *reader, const char *what, uint64_t *out);
int fabric_time(struct reader *reader, const char *what, uint64_t *out);

#endif
