/* SPDX-License-Identifier: MIT */
/*
 * Variables of NCCL, and what they are to wreath.  They are read once, before
 * wreath reads its own, and a WREATH_* variable that is set is left as it is.
 */
#ifndef NCCL_ENV_H
#define NCCL_ENV_H

#include <stdbool.h>
#include <stddef.h>

/* What is left to say of a value, at most. */
#define NCCL_NOTE 256
/* The longest value of a WREATH_* variable, with its end. */
#define NCCL_VALUE 512

/* What a mapping makes of a value. */
enum nccl_mapped {
	NCCL_SET,     /* @out is the value of the WREATH_* variable */
	NCCL_DEFAULT, /* wreath does that anyhow */
	NCCL_CANNOT,  /* it cannot be expressed, or is none; @note says why */
};

struct nccl_mapping {
	const char *value;
	char out[NCCL_VALUE];
	char note[NCCL_NOTE]; /* "" or what must be said */
};

struct nccl_var {
	const char *name;   /* "NCCL_IB_TC" */
	const char *target; /* "WREATH_TRAFFIC_CLASS"; NULL: ignored */
	enum nccl_mapped (*map)(struct nccl_mapping *mapping);
	const char *why; /* where it is ignored: a reason, or NULL */
};

/* The one table; ends with a name that is NULL. */
extern const struct nccl_var nccl_vars[];

/* ---- map.c ---- */

enum nccl_mapped nccl_map_debug(struct nccl_mapping *mapping);
enum nccl_mapped nccl_map_algo(struct nccl_mapping *mapping);
enum nccl_mapped nccl_map_gid(struct nccl_mapping *mapping);
enum nccl_mapped nccl_map_byte(struct nccl_mapping *mapping);
enum nccl_mapped nccl_map_sl(struct nccl_mapping *mapping);
enum nccl_mapped nccl_map_timeout(struct nccl_mapping *mapping);
enum nccl_mapped nccl_map_channels(struct nccl_mapping *mapping);
enum nccl_mapped nccl_map_channels_max(struct nccl_mapping *mapping);
enum nccl_mapped nccl_map_ib_off(struct nccl_mapping *mapping);
enum nccl_mapped nccl_map_ipc_off(struct nccl_mapping *mapping);
enum nccl_mapped nccl_map_p2p_level(struct nccl_mapping *mapping);
enum nccl_mapped nccl_map_gdr_level(struct nccl_mapping *mapping);
enum nccl_mapped nccl_map_dmabuf(struct nccl_mapping *mapping);
/* A whole number, decimal or hexadecimal, from @min to @max. */
bool nccl_parse(const char *text, long min, long max, long *out);

/* ---- list.c: lists of devices and interfaces ---- */

/* The folder where devices are, "/sys/class/infiniband"; for tests. */
extern const char *nccl_devices_at;
enum nccl_mapped nccl_map_hca(struct nccl_mapping *mapping);
enum nccl_mapped nccl_map_pkey(struct nccl_mapping *mapping);
enum nccl_mapped nccl_map_ifname(struct nccl_mapping *mapping);

/* ---- env.c ---- */

/* A variable; NULL if it is not set, or in a set-uid program. */
const char *nccl_env(const char *name);

#endif
