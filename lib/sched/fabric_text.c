/* SPDX-License-Identifier: MIT */
/* The values in the text form of a fabric. */
#include <string.h>

#include "fabric_text.h"
#include "sched.h"

/* Bytes a second, and what all times of a simulation fit 64 bits with. */
#define RATE_MIN 1e3
#define RATE_MAX 1e15
#define SECONDS_MAX 10

int fabric_int(struct reader *reader, const char *what, int min, int max,
	       int *out)
{
	char text[WORD_SHOWN];
	struct word word;
	int64_t value;

	if (!words_next(reader, &word))
		return words_refuse(reader, &word, "expected %s, a whole "
				    "number from %d to %d", what, min, max);
	words_shown(&word, text);
	if (word.length >= WORD_SHOWN ||
	    !base_parse_int(text, min, max, &value))
		return words_refuse(reader, &word,
				    "%s '%s' is not a whole number from %d to "
				    "%d", what, text, min, max);
	*out = (int)value;
	return 0;
}

int fabric_rate(struct reader *reader, const char *what, uint64_t *out)
{
	char text[WORD_SHOWN];
	struct word word;
	double value;

	if (!words_next(reader, &word))
		return words_refuse(reader, &word, "expected %s, such as 400G "
				    "(bits a second) or 50GB/s", what);
	words_shown(&word, text);
	/* Only what is above zero is a rate. */
	if (text[0] == '0' && strspn(text, "0.") == strspn(text, "0123456789."))
		return words_refuse(reader, &word,
				    "%s '%s' is 0: nothing would ever arrive",
				    what, text);
	if (word.length >= WORD_SHOWN || !sched_parse_rate(text, &value) ||
	    value < RATE_MIN || value > RATE_MAX)
		return words_refuse(reader, &word,
				    "%s '%s' is not a rate from 1KB/s to "
				    "1000TB/s, such as 400G (bits a second) "
				    "or 50GB/s", what, text);
	*out = (uint64_t)(value + 0.5);
	return 0;
}

int fabric_time(struct reader *reader, const char *what, uint64_t *out)
{
	char text[WORD_SHOWN];
	struct word word;
	double seconds;

	if (!words_next(reader, &word))
		return words_refuse(reader, &word,
				    "expected %s, such as 2us or 700ns", what);
	words_shown(&word, text);
	if (text[0] == '-')
		return words_refuse(reader, &word,
				    "%s '%s' is negative: nothing arrives "
				    "before it is sent", what, text);
	if (word.length >= WORD_SHOWN || !sched_parse_time(text, &seconds) ||
	    seconds > SECONDS_MAX)
		return words_refuse(reader, &word,
				    "%s '%s' is not a time from 0s to 10s, "
				    "such as 2us or 700ns", what, text);
	*out = (uint64_t)(seconds * 1e12 + 0.5);
	return 0;
}
