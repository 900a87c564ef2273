/* SPDX-License-Identifier: MIT */
/*
 * What goes over boot's connections once both ends have proved themselves: a
 * head of 32 bytes, and a payload whose length the receiver knows beforehand
 * or bounds.  Integers are little-endian.
 */
#ifndef BOOT_WIRE_H
#define BOOT_WIRE_H

#include "id.h"

#define BOOT_MAX_RANKS 65536
#define BOOT_TOKEN_BYTES 16
#define BOOT_FAN_OUT 4
#define BOOT_HEAD_BYTES 32
#define BOOT_TEXT_BYTES 1536
#define BOOT_CONFIG_BYTES 64
#define BOOT_HOST_BYTES 64

enum boot_frame_type {
	/* Between a rank and the root. */
	BOOT_JOIN = 1, /* struct boot_join_wire */
	BOOT_ADMITTED, /* nothing: the root has read the claim */
	BOOT_PLACED,   /* struct boot_place_wire */
	BOOT_REFUSED,  /* as BOOT_FAIL */

	/* Between ranks. */
	BOOT_UP,      /* records of a subtree; value: bytes of a record */
	BOOT_DOWN,    /* records of all ranks */
	BOOT_MESSAGE, /* source, target */
	BOOT_CREDIT,  /* source has taken value messages of target */
	BOOT_FAIL,    /* error in value, culprit in source, text as payload */
	BOOT_LEAVE,   /* source has closed */
	BOOT_NOTE,    /* source, target: as BOOT_MESSAGE, without credit */
	BOOT_ASK,     /* the same, and target's thread answers by a note */

	/* Between survivors: survey.h.  REFUSED is the chair's, too. */
	BOOT_SURVIVOR,  /* the ranks that it leaves out, a bit each */
	BOOT_SURVIVORS, /* the id, and the ranks that are left, a bit each */
	BOOT_OUTCOME,   /* as BOOT_FAIL; value 0: well */

	BOOT_LAST_FRAME = BOOT_OUTCOME,
};

struct boot_head {
	uint32_t bytes; /* of the payload */
	uint32_t type;
	uint32_t source;
	uint32_t target;
	uint64_t sequence;
	uint32_t value;
};

void boot_head_encode(const struct boot_head *head,
		      unsigned char out[BOOT_HEAD_BYTES]);
/* False when the bytes cannot be a head. */
bool boot_head_decode(const unsigned char in[BOOT_HEAD_BYTES],
		      struct boot_head *head);

/* What a rank says of itself to the root. */
struct boot_join_wire {
	uint32_t version;
	uint32_t rank;
	uint32_t n_ranks;
	uint32_t pid;
	uint32_t timeout_ms; /* how long it will wait for the others */
	struct boot_addr listens_at;
	char host[BOOT_HOST_BYTES];
	char config[BOOT_CONFIG_BYTES];
};
_Static_assert(sizeof(struct boot_join_wire) == 168, "goes over the wire");

struct boot_name_wire {
	uint32_t pid;
	char host[BOOT_HOST_BYTES];
};

/* What ranks tell all others, once the tree stands. */
struct boot_member_wire {
	struct boot_name_wire name;
	struct boot_addr listens_at;
};
_Static_assert(sizeof(struct boot_member_wire) == 88, "goes over the wire");

/* Where the rank's parent is, and who its neighbours are. */
struct boot_place_wire {
	unsigned char token[BOOT_TOKEN_BYTES];
	struct boot_addr parent_at;
	struct boot_name_wire parent;
	struct boot_name_wire children[BOOT_FAN_OUT];
};
_Static_assert(sizeof(struct boot_place_wire) == 376, "goes over the wire");

/* Make @text end within @bytes and hold nothing that a terminal obeys. */
void boot_text_clean(char *text, size_t bytes);

/* "60 s" or "1500 ms". */
void boot_text_ms(int64_t ms, char text[24]);

/* ---- the tree: shape.c ---- */

/*
 * The place of a rank in the tree.  A subtree is a range of ranks [first, end)
 * whose lowest is its head, so that its records are one piece of memory and
 * the way to a rank is found by comparing.
 */
struct boot_shape {
	int first, end; /* this rank's subtree; first is the rank itself */
	int parent;     /* or -1 */
	int depth;
	int n_children;
	struct {
		int first, end;
	} child[BOOT_FAN_OUT];
};

void boot_shape_of(int rank, int n_ranks, struct boot_shape *shape);

#endif
