/* SPDX-License-Identifier: MIT */
/* The text form of a fabric.  Words are looked at in place, never copied. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fabric_text.h"
#include "sched.h"

/* Bytes a second, and what all times of a simulation fit 64 bits with. */
#define RATE_MIN 1e3
#define RATE_MAX 1e15
#define SECONDS_MAX 10

static bool word_is(const struct word *word, const char *text)
{
	return strlen(text) == word->length &&
	       !memcmp(word->at, text, word->length);
}

int fabric_refuse(const struct reader *reader, const struct word *word,
		  const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return base_error(WREATH_EINVAL, "%s:%d:%d: %s", reader->name,
			  reader->line, (int)(word->at - reader->start) + 1,
			  text);
}

const char *fabric_shown(const struct word *word, char out[WORD_SHOWN])
{
	size_t n = base_min_size(word->length, WORD_SHOWN - 1);
	size_t i;

	for (i = 0; i < n; i++)
		out[i] = word->at[i] > ' ' && word->at[i] < 0x7f ? word->at[i]
								 : '?';
	out[n] = '\0';
	return out;
}

bool fabric_next(struct reader *reader, struct word *word)
{
	const char *at = reader->at;

	while (*at == ' ' || *at == '\t' || *at == '\r' || *at == ',')
		at++;
	word->at = at;
	while (*at && !strchr(" \t\r\n,#", *at))
		at++;
	word->length = (size_t)(at - word->at);
	reader->at = at;
	return word->length > 0;
}

static const char *nearest(const char *text, const char *const *words)
{
	unsigned int best = (unsigned int)(strlen(text) / 3 + 2);
	const char *found = NULL;

	for (; *words; words++) {
		unsigned int d = base_distance(text, *words);

		if (d < best) {
			best = d;
			found = *words;
		}
	}
	return found;
}

int fabric_choose(const struct reader *reader, const struct word *word,
		  const char *what, const char *const *words)
{
	char have[WORD_SHOWN], list[160] = "";
	const char *near;
	size_t n = 0;
	int i;

	for (i = 0; words[i]; i++) {
		if (word_is(word, words[i]))
			return i;
		n += (size_t)snprintf(list + n, sizeof(list) - n, " %s",
				      words[i]);
		if (n >= sizeof(list))
			n = sizeof(list) - 1;
	}
	if (!word->length)
		return fabric_refuse(reader, word, "expected %s, one of:%s",
				     what, list);
	near = nearest(fabric_shown(word, have), words);
	if (near)
		return fabric_refuse(reader, word,
				     "'%s' is no %s; did you mean %s?", have,
				     what, near);
	return fabric_refuse(reader, word, "'%s' is no %s; expected one of:%s",
			     have, what, list);
}

int fabric_int(struct reader *reader, const char *what, int min, int max,
	       int *out)
{
	char text[WORD_SHOWN];
	struct word word;
	int64_t value;

	if (!fabric_next(reader, &word))
		return fabric_refuse(reader, &word, "expected %s, a whole "
				     "number from %d to %d", what, min, max);
	fabric_shown(&word, text);
	if (word.length >= WORD_SHOWN ||
	    !base_parse_int(text, min, max, &value))
		return fabric_refuse(reader, &word,
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

	if (!fabric_next(reader, &word))
		return fabric_refuse(reader, &word, "expected %s, such as 400G "
				     "(bits a second) or 50GB/s", what);
	fabric_shown(&word, text);
	/* Only what is above zero is a rate. */
	if (text[0] == '0' && strspn(text, "0.") == strspn(text, "0123456789."))
		return fabric_refuse(reader, &word,
				     "%s '%s' is 0: nothing would ever arrive",
				     what, text);
	if (word.length >= WORD_SHOWN || !sched_parse_rate(text, &value) ||
	    value < RATE_MIN || value > RATE_MAX)
		return fabric_refuse(reader, &word,
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

	if (!fabric_next(reader, &word))
		return fabric_refuse(reader, &word,
				     "expected %s, such as 2us or 700ns", what);
	fabric_shown(&word, text);
	if (text[0] == '-')
		return fabric_refuse(reader, &word,
				     "%s '%s' is negative: nothing arrives "
				     "before it is sent", what, text);
	if (word.length >= WORD_SHOWN || !sched_parse_time(text, &seconds) ||
	    seconds > SECONDS_MAX)
		return fabric_refuse(reader, &word,
				     "%s '%s' is not a time from 0s to 10s, "
				     "such as 2us or 700ns", what, text);
	*out = (uint64_t)(seconds * 1e12 + 0.5);
	return 0;
}
