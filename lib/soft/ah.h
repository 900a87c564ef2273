/* SPDX-License-Identifier: MIT */
#ifndef SOFT_AH_H
#define SOFT_AH_H

#include "soft/peer.h"

struct soft_ah {
	union {
		struct ibv_ah ibv;
		unsigned char spare[sizeof(struct ibv_ah) + SOFT_SPARE];
	};
	struct ibv_ah_attr attr;
	struct soft_courier *courier;
	struct ibv_grh grh; /* all but its length; if @attr.is_global */
	uint16_t slid;
};

#endif
