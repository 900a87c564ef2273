/* SPDX-License-Identifier: MIT */
/*
 * FAKE_CUDA="devices=2,seed=7,fail=cuMemAlloc_v2:3,late=500us,...": words,
 * commas between.  What is not understood ends the program, since a test that
 * goes on with something else would prove nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/cuda/fake.h"

struct fake_config fake_config = {
	.n_devices = 2,
	.version = 12040,
	.seed = 1,
	.memory = (size_t)1 << 30,
	.late_ns = 100000,
};

static _Noreturn void refuse(const char *word)
{
	fprintf(stderr, "fake cuda: FAKE_CUDA: '%s' is not understood\n", word);
	abort();
}

static uint64_t number(const char *word, const char *text, uint64_t max,
		       const char **end)
{
	char *last;
	unsigned long long n;

	if (*text < '0' || *text > '9')
		refuse(word);
	n = strtoull(text, &last, 10);
	if (n > max)
		refuse(word);
	*end = last;
	return n;
}

static void expect_end(const char *word, const char *end)
{
	if (*end)
		refuse(word);
}

static uint64_t size_of(const char *word, const char *text)
{
	static const char units[] = "KMG";
	const char *end, *unit;
	uint64_t n = number(word, text, UINT64_C(1) << 30, &end);

	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		n <<= 10 * (unit - units + 1);
		end++;
	}
	expect_end(word, end);
	return n;
}

static uint64_t duration_ns(const char *word, const char *text)
{
	const char *end;
	uint64_t n = number(word, text, 1000000, &end);

	if (!strcmp(end, "us"))
		n *= 1000;
	else if (!strcmp(end, "ms"))
		n *= 1000000;
	else if (*end || n)
		refuse(word);
	if (n > 1000000000)
		refuse(word);
	return n;
}

static void take_fail(const char *word, const char *text)
{
	const char *colon = strchr(text, ':');
	const char *end;
	char name[64];
	uint64_t n;

	if (!colon || colon == text || colon - text >= (long)sizeof(name))
		refuse(word);
	memcpy(name, text, (size_t)(colon - text));
	name[colon - text] = 0;
	if (strcmp(name, "any") && strcmp(name, "kernel") &&
	    strcmp(name, "copy") && !fake_function(name))
		refuse(word);
	n = number(word, colon + 1, UINT64_C(1) << 40, &end);
	expect_end(word, end);
	fake_fail_at(name, n);
}

static bool take_flag(const char *word)
{
	const struct {
		const char *name;
		bool *flag;
	} flags[] = {
		{"peermem", &fake_config.peermem},
		{"nodmabuf", &fake_config.nodmabuf},
		{"noipc", &fake_config.noipc},
		{"hopper", &fake_config.hopper},
		{"nomemops", &fake_config.nomemops},
		{"nopeer", &fake_config.nopeer},
		{"strict", &fake_config.strict},
	};
	size_t i;

	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (strcmp(flags[i].name, word))
			continue;
		*flags[i].flag = true;
		return true;
	}
	return false;
}

static void take(char *word)
{
	char *value = strchr(word, '=');
	const char *end = "";

	if (take_flag(word))
		return;
	if (!value)
		refuse(word);
	value++;
	if (!strncmp(word, "devices=", 8))
		fake_config.n_devices = (int)number(word, value,
						    FAKE_DEVICES_MAX, &end);
	else if (!strncmp(word, "seed=", 5))
		fake_config.seed = number(word, value, UINT64_MAX, &end);
	else if (!strncmp(word, "version=", 8))
		fake_config.version = (int)number(word, value, 100000, &end);
	else if (!strncmp(word, "memory=", 7))
		fake_config.memory = size_of(word, value);
	else if (!strncmp(word, "late=", 5))
		fake_config.late_ns = duration_ns(word, value);
	else if (!strncmp(word, "fail=", 5))
		take_fail(word, value);
	else
		refuse(word);
	expect_end(word, end);
}

void fake_read_config(void)
{
	const char *text = getenv("FAKE_CUDA");
	char word[128];

	while (text && *text) {
		size_t n = strcspn(text, ",");

		if (!n || n >= sizeof(word))
			refuse(text);
		memcpy(word, text, n);
		word[n] = 0;
		take(word);
		text += n;
		if (*text == ',' && !*++text)
			refuse(",");
	}
}
