/* SPDX-License-Identifier: MIT */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "wire.h"

struct head_wire {
	uint32_t bytes;
	uint32_t type;
	uint32_t source;
	uint32_t target;
	uint64_t sequence;
	uint32_t value;
	uint32_t zero;
};
_Static_assert(sizeof(struct head_wire) == BOOT_HEAD_BYTES,
	       "goes over the wire");

void boot_head_encode(const struct boot_head *head,
		      unsigned char out[BOOT_HEAD_BYTES])
{
	struct head_wire wire = {
		.bytes = htole32(head->bytes),
		.type = htole32(head->type),
		.source = htole32(head->source),
		.target = htole32(head->target),
		.sequence = htole64(head->sequence),
		.value = htole32(head->value),
	};

	memcpy(out, &wire, sizeof(wire));
}

bool boot_head_decode(const unsigned char in[BOOT_HEAD_BYTES],
		      struct boot_head *head)
{
	struct head_wire wire;

	memcpy(&wire, in, sizeof(wire));
	head->bytes = le32toh(wire.bytes);
	head->type = le32toh(wire.type);
	head->source = le32toh(wire.source);
	head->target = le32toh(wire.target);
	head->sequence = le64toh(wire.sequence);
	head->value = le32toh(wire.value);
	return head->type >= BOOT_JOIN && head->type <= BOOT_LAST_FRAME &&
	       !wire.zero;
}

void boot_text_clean(char *text, size_t bytes)
{
	size_t i;

	text[bytes - 1] = 0;
	for (i = 0; text[i]; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = '?';
}

void boot_text_ms(int64_t ms, char text[24])
{
	if (ms % 1000)
		snprintf(text, 24, "%" PRId64 " ms", ms);
	else
		snprintf(text, 24, "%" PRId64 " s", ms / 1000);
}
