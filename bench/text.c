/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <string.h>

#include "bench/bench.h"

void bench_json_string(FILE *to, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	fputc('"', to);
	for (; *at; at++) {
		if (*at == '"' || *at == '\\')
			fprintf(to, "\\%c", *at);
		else if (*at < 0x20 || *at == 0x7f)
			fprintf(to, "\\u%04x", *at);
		else if (*at >= 0x80)
			fputs("\\ufffd", to); /* who knows in what code */
		else
			fputc(*at, to);
	}
	fputc('"', to);
}

const char *bench_signal_name(int number)
{
	static char other[32];
	const char *name = sigabbrev_np(number);

	if (name)
		snprintf(other, sizeof(other), "SIG%s", name);
	else
		snprintf(other, sizeof(other), "signal %d", number);
	return other;
}

const char *bench_version(void)
{
	static char text[32];
	int version = wreath_version();

	snprintf(text, sizeof(text), "%d.%d.%d", version / 10000,
		 version / 100 % 100, version % 100);
	return text;
}
