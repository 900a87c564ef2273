/* SPDX-License-Identifier: MIT */
/* What single values of NCCL are to wreath. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/env.h"

bool nccl_parse(const char *text, long min, long max, long *out)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 0);
	if (errno || end == text || *end || value < min || value > max)
		return false;
	*out = value;
	return true;
}

static enum nccl_mapped no_number(struct nccl_mapping *mapping, long min,
				  long max)
{
	snprintf(mapping->note, sizeof(mapping->note),
		 "it is not a whole number from %ld to %ld", min, max);
	return NCCL_CANNOT;
}

static enum nccl_mapped set_number(struct nccl_mapping *mapping, long min,
				   long max)
{
	long value;

	if (!nccl_parse(mapping->value, min, max, &value))
		return no_number(mapping, min, max);
	snprintf(mapping->out, sizeof(mapping->out), "%ld", value);
	return NCCL_SET;
}

static enum nccl_mapped set_word(struct nccl_mapping *mapping, const char *word)
{
	snprintf(mapping->out, sizeof(mapping->out), "%s", word);
	return NCCL_SET;
}

enum nccl_mapped nccl_map_debug(struct nccl_mapping *mapping)
{
	static const char *const words[][2] = {
		{"NONE", "off"},   {"VERSION", "warn"}, {"WARN", "warn"},
		{"ABORT", "warn"}, {"INFO", "info"},    {"TRACE", "debug"},
	};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(mapping->value, words[i][0]))
			return set_word(mapping, words[i][1]);
	snprintf(mapping->note, sizeof(mapping->note),
		 "it is not one of VERSION, WARN, INFO, ABORT and TRACE");
	return NCCL_CANNOT;
}

/* One name for all operations; exceptions and choices cannot be told. */
enum nccl_mapped nccl_map_algo(struct nccl_mapping *mapping)
{
	if (!strcasecmp(mapping->value, "ring"))
		return set_word(mapping, "ring");
	if (!strcasecmp(mapping->value, "tree"))
		return set_word(mapping, "tree");
	snprintf(mapping->note, sizeof(mapping->note),
		 "only Ring or Tree alone has a counterpart; the algorithm is "
		 "chosen by size, or by WREATH_ALGO");
	return NCCL_CANNOT;
}

enum nccl_mapped nccl_map_gid(struct nccl_mapping *mapping)
{
	return set_number(mapping, -1, 255);
}

enum nccl_mapped nccl_map_byte(struct nccl_mapping *mapping)
{
	return set_number(mapping, 0, 255);
}

enum nccl_mapped nccl_map_sl(struct nccl_mapping *mapping)
{
	return set_number(mapping, 0, 15);
}

/*
 * NCCL gives the exponent that the queue pair has: 4.096 us * 2^n until it
 * tries again, NCCL_IB_RETRY_CNT times.
 */
enum nccl_mapped nccl_map_timeout(struct nccl_mapping *mapping)
{
	const char *retries = nccl_env("NCCL_IB_RETRY_CNT");
	long exponent;
	long n = 7;
	double ms;

	if (!nccl_parse(mapping->value, 1, 31, &exponent))
		return no_number(mapping, 1, 31);
	if (retries && !nccl_parse(retries, 1, 7, &n))
		snprintf(mapping->note, sizeof(mapping->note),
			 "NCCL_IB_RETRY_CNT is not from 1 to 7, and 7 is taken");
	ms = 4.096e-3 * (double)(1l << exponent) * (double)n;
	/* What WREATH_QP_TIMEOUT may be. */
	if (ms < 10)
		ms = 10;
	if (ms > 600000)
		ms = 600000;
	snprintf(mapping->out, sizeof(mapping->out), "%ldms", (long)(ms + 0.5));
	return NCCL_SET;
}

/* WREATH_CHANNELS goes to 4, which are queue pairs and no thread blocks. */
enum nccl_mapped nccl_map_channels(struct nccl_mapping *mapping)
{
	enum nccl_mapped mapped = set_number(mapping, 1, 1024);
	long value;

	if (mapped != NCCL_SET)
		return mapped;
	if (nccl_parse(mapping->out, 5, 1024, &value)) {
		snprintf(mapping->note, sizeof(mapping->note),
			 "4 channels are the most");
		return set_word(mapping, "4");
	}
	return NCCL_SET;
}

/* Without a word for more there is one channel a rail. */
enum nccl_mapped nccl_map_channels_max(struct nccl_mapping *mapping)
{
	enum nccl_mapped mapped = set_number(mapping, 1, 1024);

	if (mapped == NCCL_SET && strcmp(mapping->out, "1"))
		return NCCL_DEFAULT;
	return mapped;
}

static bool is_on(struct nccl_mapping *mapping, enum nccl_mapped *otherwise)
{
	long value;

	*otherwise = NCCL_DEFAULT;
	if (nccl_parse(mapping->value, 0, 1, &value))
		return value;
	*otherwise = no_number(mapping, 0, 1);
	return false;
}

/* The soft device is all that is left; between hosts there is no other way. */
enum nccl_mapped nccl_map_ib_off(struct nccl_mapping *mapping)
{
	enum nccl_mapped otherwise;

	return is_on(mapping, &otherwise) ? set_word(mapping, "soft0")
					  : otherwise;
}

enum nccl_mapped nccl_map_ipc_off(struct nccl_mapping *mapping)
{
	enum nccl_mapped otherwise;

	return is_on(mapping, &otherwise) ? set_word(mapping, "off")
					  : otherwise;
}

/* How near a pair must be, as a word or an old number; wreath knows never. */
static enum nccl_mapped map_level(struct nccl_mapping *mapping)
{
	static const char *const words[] = {"LOC", "NVL", "PIX", "PXB",
					    "P2C", "PXN", "PHB", "SYS"};
	long value;
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(mapping->value, words[i]))
			return i ? NCCL_DEFAULT : set_word(mapping, "off");
	if (nccl_parse(mapping->value, 0, 100, &value))
		return value ? NCCL_DEFAULT : set_word(mapping, "off");
	snprintf(mapping->note, sizeof(mapping->note),
		 "it is not one of LOC, NVL, PIX, PXB, PHB and SYS");
	return NCCL_CANNOT;
}

enum nccl_mapped nccl_map_p2p_level(struct nccl_mapping *mapping)
{
	return map_level(mapping);
}

enum nccl_mapped nccl_map_gdr_level(struct nccl_mapping *mapping)
{
	return map_level(mapping);
}

/* Without DMA-BUF there is nvidia-peermem. */
enum nccl_mapped nccl_map_dmabuf(struct nccl_mapping *mapping)
{
	enum nccl_mapped otherwise;

	if (is_on(mapping, &otherwise) || otherwise == NCCL_CANNOT)
		return otherwise;
	return set_word(mapping, "peermem");
}
