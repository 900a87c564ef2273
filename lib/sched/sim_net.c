/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "sim_net.h"

static int divide_up(int a, int b)
{
	return (a + b - 1) / b;
}

/*
 * The switches.  All ports of a node and rail are at one leaf; a leaf has so
 * many ways up, each with the rate of a rail, that its ports have
 * oversubscription times their sum; way u of every leaf goes to spine u.  In a
 * fat tree of three layers a pod is half a radix of leaves, and each of its
 * upper switches has half a radix of ways to the core.
 */
static int lay_out(struct sim_net *net)
{
	const struct sched_fabric *fabric = net->fabric;
	int radix = fabric->radix;
	int down;

	net->ports_per_node = 1;
	if (fabric->is_per_rank)
		net->ports_per_node =
			divide_up(fabric->n_ranks, fabric->n_nodes);
	if (fabric->topology == SCHED_FLAT)
		return 0;
	if (fabric->topology == SCHED_SPINE_LEAF) {
		net->leaf_nodes = fabric->leaf;
		net->n_ups = divide_up(fabric->leaf * net->ports_per_node,
				       fabric->oversubscription);
		net->n_leaves = divide_up(fabric->n_nodes, fabric->leaf);
		return 0;
	}
	net->n_ups = radix / (fabric->oversubscription + 1);
	if (net->n_ups < 1)
		net->n_ups = 1;
	down = net->n_ups * fabric->oversubscription;
	if (down > radix - net->n_ups)
		down = radix - net->n_ups;
	net->leaf_nodes = down / net->ports_per_node;
	if (net->leaf_nodes < 1)
		return base_error(WREATH_EINVAL,
				  "fabric: a node's %d ports of a rail are "
				  "more than the %d ways down of a switch of "
				  "%d ports", net->ports_per_node, down, radix);
	net->n_leaves = divide_up(fabric->n_nodes, net->leaf_nodes);
	if (net->n_leaves <= radix)
		return 0;
	net->n_halves = radix / 2;
	net->pod_leaves = radix / 2;
	if (divide_up(net->n_leaves, net->pod_leaves) > radix)
		return base_error(WREATH_EINVAL,
				  "fabric: %d nodes are more than a fat tree "
				  "of three layers with radix %d joins, %d",
				  fabric->n_nodes, radix,
				  radix * net->pod_leaves * net->leaf_nodes);
	return 0;
}

int sim_net_unit(const struct sched_fabric *fabric)
{
	struct sim_net net = {.fabric = fabric};
	int unit;

	if (fabric->n_faults || fabric->n_ranks % fabric->n_nodes ||
	    lay_out(&net))
		return 0;
	if (net.n_leaves <= 1)
		return 1;
	/*
	 * A destination's way up may not change by the shift: its number mod
	 * the ways.
	 */
	unit = net.leaf_nodes;
	if (net.n_halves)
		unit *= net.pod_leaves;
	if (fabric->routing != SCHED_MODULO || fabric->n_nodes % unit ||
	    unit * net.ports_per_node %
		    (net.n_ups * (net.n_halves ? net.n_halves : 1)))
		return 0;
	return unit;
}

static struct sim_link make_link(uint64_t rate, uint64_t latency_ps)
{
	return (struct sim_link){.per_byte = sim_per_byte(rate),
				 .latency_ps = latency_ps};
}

static uint32_t port_link(const struct sim_net *net, int port, int rail)
{
	return (uint32_t)(port * net->fabric->n_rails + rail) * 2;
}

/* Leaf's way up; the way down is the next link. */
static uint32_t up_link(const struct sim_net *net, int leaf, int up, int rail)
{
	int n_rails = net->fabric->n_rails;

	return net->up + (uint32_t)((leaf * net->n_ups + up) * n_rails +
				    rail) * 2;
}

static uint32_t pod_link(const struct sim_net *net, int pod, int up, int half,
			 int rail)
{
	int at = (pod * net->n_ups + up) * net->n_halves + half;

	return net->pod_up + (uint32_t)(at * net->fabric->n_rails + rail) * 2;
}

static int n_unit_leaves(const struct sim_net *net)
{
	return net->n_leaves ? divide_up(net->unit_nodes, net->leaf_nodes) : 0;
}

static int n_unit_pods(const struct sim_net *net)
{
	return net->n_halves ? divide_up(n_unit_leaves(net), net->pod_leaves)
			     : 0;
}

static void fill(struct sim_net *net)
{
	const struct sched_fabric *fabric = net->fabric;
	uint32_t i;

	for (i = 0; i < net->n_links; i++) {
		const struct sched_rail *rail = &fabric->in_node;
		uint64_t latency_ps = 0;

		if (i < net->in_node)
			rail = &fabric->rails[i / 2 %
					      (uint32_t)fabric->n_rails];
		if (i >= net->up && i < net->in_node)
			latency_ps = fabric->switch_ps;
		else if (i % 2 == 0)
			latency_ps = rail->latency_ps;
		net->links[i] = make_link(rail->rate, latency_ps);
	}
}

static void spoil(struct sim_link *link, const struct sched_fault *fault)
{
	if (fault->is_lost)
		link->per_byte = 0;
	else
		link->per_byte = make_link(fault->rate, 0).per_byte;
}

static int spoil_links(struct sim_net *net)
{
	const struct sched_fabric *fabric = net->fabric;
	int i, p;

	for (i = 0; i < fabric->n_faults; i++) {
		const struct sched_fault *fault = &fabric->faults[i];
		uint32_t at;

		if (fault->is_up &&
		    (fault->node >= net->n_leaves || fault->up >= net->n_ups))
			return base_error(
				WREATH_EINVAL,
				"fabric: line %d, column %d: there are %d "
				"leaves of %d ways up: no leaf %d with way %d",
				fault->line, fault->column, net->n_leaves,
				net->n_ups, fault->node, fault->up);
		if (fault->is_up) {
			at = up_link(net, fault->node, fault->up, fault->rail);
			spoil(&net->links[at], fault);
			spoil(&net->links[at + 1], fault);
			continue;
		}
		for (p = 0; p < net->n_ports; p++) {
			int node = fabric->is_per_rank
					   ? sched_node_of(net->shape, p) : p;

			if (node != fault->node)
				continue;
			at = port_link(net, p, fault->rail);
			spoil(&net->links[at], fault);
			spoil(&net->links[at + 1], fault);
		}
	}
	return 0;
}

int sim_net_init(struct sim_net *net, const struct sched_fabric *fabric,
		 const struct sched_shape *shape, int unit)
{
	int n_ranks;
	int err;

	*net = (struct sim_net){.fabric = fabric, .shape = shape};
	err = lay_out(net);
	if (err)
		return err;
	net->unit_nodes = unit ? unit : fabric->n_nodes;
	n_ranks = unit ? unit * (fabric->n_ranks / fabric->n_nodes)
		       : fabric->n_ranks;
	net->n_ports = fabric->is_per_rank ? n_ranks : net->unit_nodes;
	net->up = port_link(net, net->n_ports, 0);
	net->pod_up = up_link(net, n_unit_leaves(net), 0, 0);
	net->in_node = pod_link(net, n_unit_pods(net), 0, 0, 0);
	net->n_links = net->in_node;
	if (fabric->in_node.rate)
		net->n_links += 2 * (uint32_t)n_ranks;
	net->links = base_alloc(net->n_links ? net->n_links : 1,
				sizeof(*net->links));
	if (!net->links)
		return WREATH_ENOMEM;
	fill(net);
	err = spoil_links(net);
	if (err)
		sim_net_release(net);
	return err;
}

void sim_net_release(struct sim_net *net)
{
	base_free(net->links);
	net->links = NULL;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* The spine that the path goes by, or -1: none is left to both leaves. */
static int choose_up(const struct sim_net *net, int from, int to, int rail,
		     uint64_t key)
{
	int i;

	for (i = 0; i < net->n_ups; i++) {
		int up = (int)((key + (uint64_t)i) % (uint64_t)net->n_ups);

		if (net->links[up_link(net, from, up, rail)].per_byte &&
		    net->links[up_link(net, to, up, rail) + 1].per_byte)
			return up;
	}
	return -1;
}

/* The switches between two ports, behind path[0]: how many links. */
static int climb(const struct sim_net *net, int from, int to, int rail,
		 uint64_t key, uint32_t *path)
{
	int from_leaf = from / net->leaf_nodes;
	int to_leaf = to / net->leaf_nodes;
	int n_leaves = n_unit_leaves(net);
	int n = 0;
	int up;

	if (from_leaf == to_leaf)
		return 0;
	up = choose_up(net, from_leaf % n_leaves, to_leaf % n_leaves, rail,
		       key);
	if (up < 0)
		return base_error(WREATH_EINVAL,
				  "fabric: the lost links leave no way from "
				  "leaf %d to leaf %d", from_leaf, to_leaf);
	path[n++] = up_link(net, from_leaf % n_leaves, up, rail);
	if (net->n_halves && from_leaf / net->pod_leaves !=
				     to_leaf / net->pod_leaves) {
		int half = (int)(key / (uint64_t)net->n_ups %
				 (uint64_t)net->n_halves);
		int n_pods = n_unit_pods(net);

		path[n++] = pod_link(net, from_leaf / net->pod_leaves % n_pods,
				     up, half, rail);
		path[n++] = pod_link(net, to_leaf / net->pod_leaves % n_pods,
				     up, half, rail) + 1;
	}
	path[n++] = up_link(net, to_leaf % n_leaves, up, rail) + 1;
	return n;
}

int sim_net_path(const struct sim_net *net, int source, int target,
		 int channel, uint32_t path[SIM_PATH_MAX])
{
	const struct sched_fabric *fabric = net->fabric;
	int from = sched_node_of(net->shape, source);
	int to = sched_node_of(net->shape, target);
	int from_port = fabric->is_per_rank ? source : from;
	int to_port = fabric->is_per_rank ? target : to;
	int rail, n;
	uint64_t key = (uint64_t)to_port;

	if (from == to && fabric->in_node.rate) {
		uint32_t n_here = (net->n_links - net->in_node) / 2;

		path[0] = net->in_node + (uint32_t)source % n_here * 2;
		path[1] = net->in_node + (uint32_t)target % n_here * 2 + 1;
		return 2;
	}
	rail = channel % fabric->n_rails;
	if (fabric->routing == SCHED_HASH)
		key = mix(mix((uint64_t)source << 32 | (uint64_t)target) +
			  (uint64_t)channel) >> 1;
	path[0] = port_link(net, from_port % net->n_ports, rail);
	n = net->n_leaves ? climb(net, from, to, rail, key, path + 1) : 0;
	if (n < 0)
		return n;
	path[n + 1] = port_link(net, to_port % net->n_ports, rail) + 1;
	return n + 2;
}

void sim_net_name(const struct sim_net *net, uint32_t link, char *out,
		  size_t size)
{
	uint32_t n_rails = (uint32_t)net->fabric->n_rails;
	const char *way = link % 2 ? "in" : "out";
	uint32_t at;

	if (link >= net->in_node) {
		snprintf(out, size, "rank %u in its node, %s",
			 (link - net->in_node) / 2, way);
	} else if (link >= net->pod_up) {
		at = (link - net->pod_up) / 2 / n_rails;
		snprintf(out, size, "pod %u switch %u core way %u rail %u %s",
			 at / (uint32_t)(net->n_halves * net->n_ups),
			 at / (uint32_t)net->n_halves % (uint32_t)net->n_ups,
			 at % (uint32_t)net->n_halves,
			 (link - net->pod_up) / 2 % n_rails,
			 link % 2 ? "down" : "up");
	} else if (link >= net->up) {
		at = (link - net->up) / 2 / n_rails;
		snprintf(out, size, "leaf %u way %u rail %u %s",
			 at / (uint32_t)net->n_ups, at % (uint32_t)net->n_ups,
			 (link - net->up) / 2 % n_rails,
			 link % 2 ? "down" : "up");
	} else {
		snprintf(out, size, "%s %u rail %u %s",
			 net->fabric->is_per_rank ? "rank" : "node",
			 link / 2 / n_rails, link / 2 % n_rails, way);
	}
}
