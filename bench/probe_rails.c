/* SPDX-License-Identifier: MIT */
/* The rails that this rank's ports would make. */
#include <string.h>

#include "bench/info.h"
#include "net/net.h"
#include "soft/soft.h"

_Static_assert(INFO_RAILS_MAX == NET_CHANNELS_MAX, "all rails are shown");

void info_probe_rails(const struct base_env *env, bool one_host,
		      struct info_rails *rails)
{
	static char names[1][128] = {"this rank"};
	struct net_own_rail own[NET_CHANNELS_MAX];
	const char *soft = env->text[BASE_ENV_SOFT];
	struct net_args args = {
		.env = env,
		.all_local = one_host,
		.all_ports = *env->text[BASE_ENV_HCA] || !strcmp(soft, "off"),
		.n_ranks = 1,
		.names = names,
	};
	int err, i;

	memset(rails, 0, sizeof(*rails));
	if (env->is_set[BASE_ENV_CHANNELS])
		args.max_rails = (int)env->value[BASE_ENV_CHANNELS];
	err = soft_table(&args.soft);
	if ((err && err != WREATH_EUNSUP) ||
	    ((err || !one_host || args.all_ports) && verbs_ibv(&args.ibv) &&
	     !args.soft) ||
	    net_rails_own(&args, own, &rails->n))
		snprintf(rails->error, sizeof(rails->error), "%s",
			 wreath_error_text());
	for (i = 0; i < rails->n; i++) {
		memcpy(rails->rails[i].name, own[i].name, sizeof(own[i].name));
		rails->rails[i].link_layer = own[i].link_layer;
		rails->rails[i].rate_gbps = own[i].mbps / 1000.0;
	}
}
