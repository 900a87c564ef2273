/* SPDX-License-Identifier: MIT */
/* Names and rates. */
#include "dropin.h"

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return verbs_wc_name(status);
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
	return verbs_event_name(event);
}

const char *ibv_node_type_str(enum ibv_node_type type)
{
	static const char *const names[] = {
		[IBV_NODE_CA] = "channel adapter",
		[IBV_NODE_SWITCH] = "switch",
		[IBV_NODE_ROUTER] = "router",
		[IBV_NODE_RNIC] = "iWARP adapter",
		[IBV_NODE_USNIC] = "usNIC",
		[IBV_NODE_USNIC_UDP] = "usNIC over UDP",
		[IBV_NODE_UNSPECIFIED] = "unspecified",
	};

	return type >= IBV_NODE_CA && type <= IBV_NODE_UNSPECIFIED
		       ? names[type]
		       : "unknown";
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
	static const char *const names[] = {
		[IBV_PORT_NOP] = "PORT_NOP",
		[IBV_PORT_DOWN] = "PORT_DOWN",
		[IBV_PORT_INIT] = "PORT_INIT",
		[IBV_PORT_ARMED] = "PORT_ARMED",
		[IBV_PORT_ACTIVE] = "PORT_ACTIVE",
		[IBV_PORT_ACTIVE_DEFER] = "PORT_ACTIVE_DEFER",
	};

	return state <= IBV_PORT_ACTIVE_DEFER ? names[state] : "unknown";
}

/*
 * Multiples of 2.5 Gbit/s, 0 where that is not a number of its own; and what
 * passes a link in Mbit/s: lanes of 14.0625, 25.78125 and so on.
 */
static const struct {
	enum ibv_rate rate;
	int mult, mbps;
} rates[] = {
	{IBV_RATE_2_5_GBPS, 1, 2500},	   {IBV_RATE_5_GBPS, 2, 5000},
	{IBV_RATE_10_GBPS, 4, 10000},	   {IBV_RATE_20_GBPS, 8, 20000},
	{IBV_RATE_30_GBPS, 12, 30000},	   {IBV_RATE_40_GBPS, 16, 40000},
	{IBV_RATE_60_GBPS, 24, 60000},	   {IBV_RATE_80_GBPS, 32, 80000},
	{IBV_RATE_120_GBPS, 48, 120000},   {IBV_RATE_14_GBPS, 0, 14062},
	{IBV_RATE_56_GBPS, 0, 56250},	   {IBV_RATE_112_GBPS, 0, 112500},
	{IBV_RATE_168_GBPS, 0, 168750},	   {IBV_RATE_25_GBPS, 0, 25781},
	{IBV_RATE_100_GBPS, 0, 103125},	   {IBV_RATE_200_GBPS, 0, 206250},
	{IBV_RATE_300_GBPS, 0, 309375},	   {IBV_RATE_28_GBPS, 11, 28125},
	{IBV_RATE_50_GBPS, 20, 53125},	   {IBV_RATE_400_GBPS, 160, 425000},
	{IBV_RATE_600_GBPS, 240, 637500},  {IBV_RATE_800_GBPS, 320, 850000},
	{IBV_RATE_1200_GBPS, 480, 1275000},
};

int ibv_rate_to_mult(enum ibv_rate rate)
{
	size_t i;

	for (i = 0; i < base_countof(rates); i++) {
		if (rates[i].rate == rate && rates[i].mult)
			return rates[i].mult;
	}
	return -1;
}

enum ibv_rate mult_to_ibv_rate(int mult)
{
	size_t i;

	for (i = 0; i < base_countof(rates); i++) {
		if (mult && rates[i].mult == mult)
			return rates[i].rate;
	}
	return IBV_RATE_MAX;
}

int ibv_rate_to_mbps(enum ibv_rate rate)
{
	size_t i;

	for (i = 0; i < base_countof(rates); i++) {
		if (rates[i].rate == rate)
			return rates[i].mbps;
	}
	return -1;
}

enum ibv_rate mbps_to_ibv_rate(int mbps)
{
	size_t i;

	for (i = 0; i < base_countof(rates); i++) {
		if (rates[i].mbps == mbps)
			return rates[i].rate;
	}
	return IBV_RATE_MAX;
}
