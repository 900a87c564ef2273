/* SPDX-License-Identifier: MIT */
/*
 * ncclConfig_t: its size says how many of its members the program knows.  What
 * is longer than what we know is from a later version, whose members at the
 * end may be left out; what is shorter is filled with what means nothing.
 */
#include <string.h>

#include "nccl/inner.h"

#define CONFIG_MAGIC 0xcafebeefu
/* No structure of settings is larger: a size beyond it is no size. */
#define CONFIG_BYTES_MAX 4096

/* What a number may be. */
struct range {
	const char *name;
	size_t offset;
	int min, max;
};

#define ROW(member, min, max)                                                  \
	{                                                                      \
		#member, offsetof(ncclConfig_t, member), min, max              \
	}

static const struct range ranges[] = {
	ROW(blocking, 0, 1),
	ROW(cgaClusterSize, 0, INT_MAX),
	ROW(minCTAs, 1, INT_MAX),
	ROW(maxCTAs, 1, INT_MAX),
	ROW(splitShare, 0, 1),
	ROW(trafficClass, 0, INT_MAX),
	ROW(collnetEnable, 0, 1),
	ROW(CTAPolicy, 0, INT_MAX),
	ROW(shrinkShare, 0, 1),
	ROW(nvlsCTAs, 1, INT_MAX),
	ROW(nChannelsPerNetPeer, 1, INT_MAX),
	ROW(nvlinkCentricSched, 0, 1),
};

static int member(const ncclConfig_t *config, const struct range *range)
{
	int value;

	memcpy(&value, (const char *)config + range->offset, sizeof(value));
	return value;
}

static ncclResult_t check_ranges(const ncclConfig_t *config,
				 const char *function)
{
	size_t i;

	for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		int value = member(config, &ranges[i]);

		if (value == NCCL_CONFIG_UNDEF_INT ||
		    (value >= ranges[i].min && value <= ranges[i].max))
			continue;
		if (ranges[i].max == INT_MAX)
			return nccl_fail(ncclInvalidArgument,
					 "%s: config's %s is %d, and must be "
					 "%d or more", function, ranges[i].name,
					 value, ranges[i].min);
		return nccl_fail(ncclInvalidArgument,
				 "%s: config's %s is %d, which is not in "
				 "%d..%d", function, ranges[i].name, value,
				 ranges[i].min, ranges[i].max);
	}
	if (config->minCTAs != NCCL_CONFIG_UNDEF_INT &&
	    config->maxCTAs != NCCL_CONFIG_UNDEF_INT &&
	    config->minCTAs > config->maxCTAs)
		return nccl_fail(ncclInvalidArgument,
				 "%s: config's minCTAs is %d, and maxCTAs %d",
				 function, config->minCTAs, config->maxCTAs);
	return ncclSuccess;
}

ncclResult_t nccl_config_read(const ncclConfig_t *config, const char *function,
			      struct nccl_settings *out)
{
	ncclConfig_t own = NCCL_CONFIG_INITIALIZER;
	int blocking = nccl_env_blocking();
	ncclResult_t result;

	if (blocking >= 0)
		out->is_blocking = blocking;
	if (!config)
		return ncclSuccess;
	if (config->magic != CONFIG_MAGIC)
		return nccl_fail(ncclInvalidArgument,
				 "%s: config's magic is 0x%x, not 0x%x; begin "
				 "with NCCL_CONFIG_INITIALIZER", function,
				 config->magic, CONFIG_MAGIC);
	if (config->size < offsetof(ncclConfig_t, cgaClusterSize) ||
	    config->size > CONFIG_BYTES_MAX)
		return nccl_fail(ncclInvalidArgument,
				 "%s: config's size is %zu, which is not in "
				 "%zu..%d", function, config->size,
				 offsetof(ncclConfig_t, cgaClusterSize),
				 CONFIG_BYTES_MAX);
	memcpy(&own, config, config->size < sizeof(own) ? config->size
							: sizeof(own));
	result = check_ranges(&own, function);
	if (result)
		return result;
	/* The environment wins, as it does in NCCL. */
	if (blocking < 0 && own.blocking != NCCL_CONFIG_UNDEF_INT)
		out->is_blocking = own.blocking;
	if (own.trafficClass != NCCL_CONFIG_UNDEF_INT)
		nccl_log(NCCL_INFO,
			 "%s: config's trafficClass %d is ignored; set "
			 "WREATH_TRAFFIC_CLASS for all communicators",
			 function, own.trafficClass);
	if (own.netName)
		nccl_log(NCCL_INFO,
			 "%s: config's netName %.32s is ignored; set "
			 "WREATH_HCA for all communicators", function,
			 own.netName);
	return ncclSuccess;
}
