/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "soft/list.h"

static const char *const kind_words[SOFT_N_KINDS] = {"roce", "ib"};

struct unit {
	const char *text;
	uint64_t value;
};

static const struct unit rates[] = {
	{"", 1},
	{"K", 1000},
	{"M", 1000000},
	{"G", 1000000000},
	{"T", 1000000000000},
};
static const struct unit times[] = {
	{"ns", 1},
	{"us", 1000},
	{"ms", 1000000},
};

/* "2.5G": a decimal number and one of @n units; false: it is not. */
static bool parse_number(const char *text, size_t bytes,
			 const struct unit *units, size_t n, uint64_t min,
			 uint64_t max, uint64_t *out)
{
	uint64_t value = 0, part = 1;
	size_t at = 0, i;
	bool is_part = false;

	/* 15 digits and the largest unit are less than 2^90: the product is
	 * of 128 bits. */
	for (; at < bytes; at++) {
		if (text[at] == '.' && at && !is_part) {
			is_part = true;
			continue;
		}
		if (text[at] < '0' || text[at] > '9')
			break;
		value = value * 10 + (uint64_t)(text[at] - '0');
		part *= is_part ? 10 : 1;
		if (value >= 1000000000000000u)
			return false;
	}
	if (!at || text[at - 1] == '.')
		return false;
	for (i = 0; i < n; i++) {
		__extension__ unsigned __int128 product = value;

		if (strlen(units[i].text) != bytes - at ||
		    memcmp(units[i].text, text + at, bytes - at))
			continue;
		product = product * units[i].value / part;
		if (product < min || product > max)
			return false;
		*out = (uint64_t)product;
		return true;
	}
	return false;
}

/* What stands behind the @ of @word: "10G", "10G+100us" or "+100us". */
static int parse_pace(const char *word, const char *text,
		      struct verbs_pace *pace)
{
	const char *plus = strchr(text, '+');
	size_t n = plus ? (size_t)(plus - text) : strlen(text);

	if ((n || !plus) &&
	    !parse_number(text, n, rates, base_countof(rates), SOFT_PACE_MIN,
			  SOFT_PACE_MAX, &pace->bits))
		return base_error(WREATH_EINVAL,
				  "WREATH_SOFT: '%.64s': '%.*s' is no rate "
				  "from 1K to 10T bits a second; write for "
				  "example roce:1@2.5G", word,
				  (int)base_min_size(n, 64), text);
	if (plus && !parse_number(plus + 1, strlen(plus + 1), times,
				  base_countof(times), 1, SOFT_LATENCY_MAX,
				  &pace->latency_ns))
		return base_error(WREATH_EINVAL,
				  "WREATH_SOFT: '%.64s': '%.64s' is no latency "
				  "from 1ns to 10000ms; write for example "
				  "roce:1@10G+100us", word, plus + 1);
	return 0;
}

/* How many devices "ib:2" is; 0: not a kind and a number. */
static int64_t parse_kind(const char *text, enum soft_kind *kind)
{
	size_t i;

	for (i = 0; i < SOFT_N_KINDS; i++) {
		size_t length = strlen(kind_words[i]);
		int64_t n = 1;

		if (strncmp(text, kind_words[i], length))
			continue;
		if (text[length] &&
		    (text[length] != ':' ||
		     !base_parse_int(text + length + 1, 1, SOFT_N_DEVICES,
				     &n)))
			continue;
		*kind = (enum soft_kind)i;
		return n;
	}
	return 0;
}

/* One word of the list; appends to @items.  0 or WREATH_EINVAL. */
static int parse_word(const char *word, struct soft_item *items, int *n)
{
	struct soft_item item = {.kind = SOFT_ETHERNET};
	const char *at = strchr(word, '@');
	char bare[32];
	int64_t more;
	int err = 0;

	snprintf(bare, sizeof(bare), "%.*s",
		 (int)base_min_size(at ? (size_t)(at - word) : strlen(word),
				    sizeof(bare) - 1), word);
	more = parse_kind(bare, &item.kind);
	if (!more)
		return base_error(WREATH_EINVAL,
				  "WREATH_SOFT: '%.64s' is not ib:N or roce:N "
				  "with N from 1 to %d; write for example "
				  "roce:2,ib:1, or off", word, SOFT_N_DEVICES);
	if (at)
		err = parse_pace(word, at + 1, &item.pace);
	if (err)
		return err;
	if (*n + more > SOFT_N_DEVICES)
		return base_error(WREATH_EINVAL,
				  "WREATH_SOFT: more than %d devices",
				  SOFT_N_DEVICES);
	while (more--)
		items[(*n)++] = item;
	return 0;
}

int soft_list_parse(const char *text, bool in_node, struct soft_item *items,
		    int *n)
{
	char copy[sizeof(((struct base_env *)NULL)->text[0])];
	char *word, *rest = NULL;
	bool is_paced = false;
	int i, err;

	*n = 0;
	if (!strcmp(text, "off"))
		return base_error(WREATH_EUNSUP, "the soft device is off "
						 "(WREATH_SOFT=off)");
	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, ",", &rest); word;
	     word = strtok_r(NULL, ",", &rest)) {
		err = parse_word(word, items, n);
		if (err)
			return err;
	}
	if (!*n)
		return parse_word("", items, n);
	for (i = 0; i < *n; i++)
		is_paced |= soft_is_paced(&items[i].pace);
	if (!in_node || !is_paced)
		return 0;
	if (*n == SOFT_N_DEVICES)
		return base_error(WREATH_EINVAL,
				  "WREATH_SOFT: more than %d devices, with "
				  "that inside of the node (WREATH_NODE)",
				  SOFT_N_DEVICES);
	items[(*n)++] = (struct soft_item){.kind = SOFT_ETHERNET,
					   .is_inner = true};
	return 0;
}
