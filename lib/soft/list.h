/* SPDX-License-Identifier: MIT */
/* WREATH_SOFT, as a list of devices. */
#ifndef SOFT_LIST_H
#define SOFT_LIST_H

#include "soft/device.h"

#define SOFT_N_DEVICES 16

struct soft_item {
	enum soft_kind kind;
	struct verbs_pace pace;
	bool is_inner; /* for peers of the same node */
};

/*
 * The devices that @text asks for, and the node's own where there is to be
 * one (@in_node) and others are paced: *@n of at most SOFT_N_DEVICES.
 */
int soft_list_parse(const char *text, bool in_node, struct soft_item *items,
		    int *n);

#endif
