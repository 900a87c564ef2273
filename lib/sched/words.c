/* SPDX-License-Identifier: MIT */
/* Text that people write, a statement a line. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "words.h"

static bool word_is(const struct word *word, const char *text)
{
	return strlen(text) == word->length &&
	       !memcmp(word->at, text, word->length);
}

int words_refuse(const struct reader *reader, const struct word *word,
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

const char *words_shown(const struct word *word, char out[WORD_SHOWN])
{
	size_t n = base_min_size(word->length, WORD_SHOWN - 1);
	size_t i;

	for (i = 0; i < n; i++)
		out[i] = word->at[i] > ' ' && word->at[i] < 0x7f ? word->at[i]
								 : '?';
	out[n] = '\0';
	return out;
}

bool words_next(struct reader *reader, struct word *word)
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

int words_choose(const struct reader *reader, const struct word *word,
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
		return words_refuse(reader, word, "expected %s, one of:%s",
				    what, list);
	near = nearest(words_shown(word, have), words);
	if (near)
		return words_refuse(reader, word,
				    "'%s' is no %s; did you mean %s?", have,
				    what, near);
	return words_refuse(reader, word, "'%s' is no %s; expected one of:%s",
			    have, what, list);
}

bool words_line(struct reader *reader)
{
	const char *end = strchr(reader->at, '\n');

	if (!end)
		return false;
	reader->start = end + 1;
	reader->at = end + 1;
	reader->line++;
	return true;
}
