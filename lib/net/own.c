/* SPDX-License-Identifier: MIT */
/* What a rank can say of its rails by itself. */
#include <stdio.h>
#include <string.h>

#include "net/search.h"

static void show(const struct net_offer *offer, bool one_host, int max,
		 struct net_own_rail *out, int *n)
{
	uint8_t places[NET_PORTS_MAX] = {0};
	struct net_rails rails = {.ports = places};
	int i;

	net_rails_find(offer, 1, one_host, &rails);
	*n = rails.n < max ? rails.n : max;
	for (i = 0; i < *n; i++) {
		const struct net_port_offer *port = &offer->ports[places[i]];

		snprintf(out[i].name, sizeof(out[i].name), "%s", port->name);
		out[i].link_layer = net_layer_name(port->link_layer);
		out[i].mbps = port->mbps;
	}
}

static int offer_of(struct net_search *search, struct net_offer *offer)
{
	struct net *net = search->net;
	int err = net_devices_open(search);

	if (!err)
		err = net_ports_look(search);
	net->offers = base_alloc(1, NET_OFFER_MAX);
	if (!err && !net->offers)
		err = WREATH_ENOMEM;
	if (err)
		return err;
	net->offer_bytes = net_offer(net, net->offers);
	return net_offer_of(net, 0, offer);
}

int net_rails_own(const struct net_args *args, struct net_own_rail *rails,
		  int *n)
{
	struct net *net = base_alloc(1, sizeof(*net));
	struct net_offer *offer = base_alloc(1, sizeof(*offer));
	struct net_search search = {.net = net, .args = args};
	int err = net && offer ? 0 : WREATH_ENOMEM;

	*n = 0;
	if (!err) {
		net->names = args->names;
		net->env = args->env;
		err = offer_of(&search, offer);
	}
	if (!err)
		show(offer, args->all_local,
		     args->max_rails ? args->max_rails : NET_CHANNELS_MAX,
		     rails, n);
	if (net) {
		net_ports_close(net);
		base_free(net->offers);
	}
	base_free(offer);
	base_free(net);
	return err;
}
