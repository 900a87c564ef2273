/* SPDX-License-Identifier: MIT */
/* A part of the door, net/net.h: memory that one rank lets another write. */
#ifndef NET_PLACE_H
#define NET_PLACE_H

#include <stdint.h>

/*
 * What one rank grants another for one operation: its output, to write final
 * bytes to, and its input, to read in place.
 */
struct net_place {
	uint64_t output, input; /* addresses at the rank that grants */
	uint64_t bytes;		/* of each */
	uint32_t output_rkey, input_rkey;
	uint32_t kinds; /* enum net_place_kind */
	uint32_t pad;
};

enum net_place_kind {
	NET_PLACE_OUTPUT = 1, /* else final bytes go to the slots */
	NET_PLACE_INPUT = 2,  /* else input is sent to the slots */
};

#endif
