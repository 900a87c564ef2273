/* SPDX-License-Identifier: MIT */
/* wreath info: devices, ports, addresses, and the settings in effect. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/info.h"
#include "reduce/reduce.h"
#include "soft/soft.h"
#include "topo/topo.h"

struct info {
	bool as_json;
	char host[64];
	struct info_source sources[2];
	char no_cm[512]; /* why librdmacm cannot connect; "" if it can */
	struct info_rails near, far; /* within this host, and beyond */
	struct info_gpus gpus;
	struct base_env env;
	bool has_env;
};

static const struct bench_option options[] = {
	{0, "json", NULL, "as JSON, to standard output", BENCH_FLAG,
	 offsetof(struct info, as_json), 0, 0, NULL},
	{0, NULL, NULL, NULL, BENCH_OTHER, 0, 0, 0, NULL},
};

static const char usage_line[] = "wreath info [--json]";
static const char usage_text[] =
	"Shows the devices of libibverbs and of the soft device, their ports "
	"and\naddresses with what becomes of them, the GPUs and how devices "
	"reach their\nmemory, and every WREATH_* variable: its value, where "
	"that came from, and what\nit is for.  Exit status 1 if a variable's "
	"value is refused.";

/* An id carries a secret: whoever reads the screen must not get it. */
static const char *shown(const struct info *info, int i)
{
	if (i == BASE_ENV_COMM_ID && info->env.text[i][0])
		return "(hidden)";
	return info->env.text[i];
}

static void print_gid(const struct info_gid *gid)
{
	printf("      GID %d: %s", gid->index, gid->address);
	if (gid->prefix)
		printf("/%d", gid->prefix);
	if (gid->interface[0])
		printf(" on %s", gid->interface);
	printf(", %s: %s\n", gid->type, gid->verdict);
}

static void print_port(const struct info_port *port)
{
	int i;

	printf("    port %d: %s, %s", port->number, port->state,
	       port->link_layer);
	if (port->rate_gbps > 0)
		printf(", %g Gb/s", port->rate_gbps);
	if (port->latency_us > 0)
		printf(", latency %g us", port->latency_us);
	printf(", MTU %d", port->mtu);
	if (port->lid)
		printf(", LID %d", port->lid);
	printf("\n");
	if (port->refusal[0])
		printf("      refused: %s\n", port->refusal);
	for (i = 0; i < port->n_gids; i++)
		print_gid(&port->gids[i]);
}

static void print_source(const struct info_source *source)
{
	int i, p;

	if (source->error[0]) {
		printf("  %s: none: %s\n", source->name, source->error);
		return;
	}
	if (!source->n_devices)
		printf("  %s: none\n", source->name);
	for (i = 0; i < source->n_devices; i++) {
		const struct info_device *device = &source->devices[i];

		printf("  %s (%s)", device->name, source->name);
		if (device->firmware[0])
			printf(", firmware %s", device->firmware);
		printf("\n");
		if (device->error[0])
			printf("    %s\n", device->error);
		for (p = 0; p < device->n_ports; p++)
			print_port(&device->ports[p]);
	}
}

static void print_rails(const char *where, const struct info_rails *rails)
{
	int i;

	printf("  %s: ", where);
	if (rails->error[0])
		printf("none: %s", rails->error);
	else if (!rails->n)
		printf("none");
	for (i = 0; i < rails->n; i++) {
		printf("%s%s (%s", i ? ", " : "", rails->rails[i].name,
		       rails->rails[i].link_layer);
		if (rails->rails[i].rate_gbps > 0)
			printf(", %g Gb/s", rails->rails[i].rate_gbps);
		printf(")");
	}
	printf("\n");
}

static void print(const struct info *info)
{
	const struct base_env_var *table = base_env_table();
	int i;

	printf("wreath %s on %s, %d cores, %s kernels\n\ndevices\n",
	       bench_version(), info->host, topo_n_cores(), reduce_isa());
	print_source(&info->sources[0]);
	print_source(&info->sources[1]);
	printf("  WREATH_CONNECT=cm: %s\n",
	       info->no_cm[0] ? info->no_cm : "librdmacm can be used");
	if (!info->has_env)
		return;
	printf("\nrails, if all ranks have such ports\n");
	print_rails("within this host", &info->near);
	print_rails("between hosts", &info->far);
	info_print_gpus(&info->gpus);
	printf("\nsettings\n");
	for (i = 0; i < BASE_N_ENV; i++)
		printf("  %-22s %-14s %-13s %s\n", table[i].name,
		       shown(info, i)[0] ? shown(info, i) : "\"\"",
		       info->env.is_set[i] ? "(environment)" : "(default)",
		       table[i].help);
}

void info_json_text(const char *text)
{
	if (text[0])
		bench_json_string(stdout, text);
	else
		printf("null");
}

void info_json_pair(const char *name, const char *value)
{
	printf("\"%s\": ", name);
	bench_json_string(stdout, value);
}

static void json_port(const struct info_port *port)
{
	int i;

	printf("{\"port\": %d, ", port->number);
	info_json_pair("state", port->state);
	printf(", ");
	info_json_pair("link_layer", port->link_layer);
	printf(", ");
	info_json_pair("refusal", port->refusal);
	printf(", \"rate_gbps\": %g, \"latency_us\": %g, \"mtu\": %d, "
	       "\"lid\": %d, \"gids\": [", port->rate_gbps, port->latency_us,
	       port->mtu, port->lid);
	for (i = 0; i < port->n_gids; i++) {
		const struct info_gid *gid = &port->gids[i];

		printf("%s{\"index\": %d, ", i ? ", " : "", gid->index);
		info_json_pair("gid", gid->text);
		printf(", ");
		info_json_pair("type", gid->type);
		printf(", ");
		info_json_pair("address", gid->address);
		printf(", \"prefix\": %d, ", gid->prefix);
		info_json_pair("interface", gid->interface);
		printf(", ");
		info_json_pair("verdict", gid->verdict);
		printf("}");
	}
	printf("]}");
}

static void json_device(const struct info_device *device)
{
	int p;

	printf("{");
	info_json_pair("name", device->name);
	printf(", ");
	info_json_pair("firmware", device->firmware);
	if (device->error[0]) {
		printf(", ");
		info_json_pair("error", device->error);
	}
	printf(", \"ports\": [");
	for (p = 0; p < device->n_ports; p++) {
		printf("%s", p ? ", " : "");
		json_port(&device->ports[p]);
	}
	printf("]}");
}

static void json_source(const struct info_source *source)
{
	int i;

	printf("    {");
	info_json_pair("source", source->name);
	printf(", \"error\": ");
	info_json_text(source->error);
	printf(", \"devices\": [");
	for (i = 0; i < source->n_devices; i++) {
		printf("%s", i ? ", " : "");
		json_device(&source->devices[i]);
	}
	printf("]}");
}

static void json_rails(const char *where, const struct info_rails *rails)
{
	int i;

	printf("\"%s\": {\"error\": ", where);
	info_json_text(rails->error);
	printf(", \"rails\": [");
	for (i = 0; i < rails->n; i++) {
		printf("%s{", i ? ", " : "");
		info_json_pair("port", rails->rails[i].name);
		printf(", ");
		info_json_pair("link_layer", rails->rails[i].link_layer);
		printf(", \"rate_gbps\": %g}", rails->rails[i].rate_gbps);
	}
	printf("]}");
}

static void print_json(const struct info *info)
{
	const struct base_env_var *table = base_env_table();
	int i;

	printf("{\n  ");
	info_json_pair("version", bench_version());
	printf(",\n  ");
	info_json_pair("host", info->host);
	printf(",\n  \"cores\": %d,\n  ", topo_n_cores());
	info_json_pair("kernels", reduce_isa());
	printf(",\n  \"sources\": [\n");
	json_source(&info->sources[0]);
	printf(",\n");
	json_source(&info->sources[1]);
	printf("\n  ],\n  \"librdmacm\": {\"error\": ");
	info_json_text(info->no_cm);
	printf("},\n  \"rails\": {\n    ");
	json_rails("within_host", &info->near);
	printf(",\n    ");
	json_rails("between_hosts", &info->far);
	printf("\n  },\n  ");
	info_json_gpus(&info->gpus);
	printf(",\n  \"settings\": [");
	for (i = 0; info->has_env && i < BASE_N_ENV; i++) {
		printf("%s\n    {", i ? "," : "");
		info_json_pair("name", table[i].name);
		printf(", ");
		info_json_pair("value", shown(info, i));
		printf(", ");
		info_json_pair("source", info->env.is_set[i] ? "environment"
							: "default");
		printf(", ");
		info_json_pair("help", table[i].help);
		printf("}");
	}
	printf("\n  ]\n}\n");
}

int info_main(int argc, char **argv)
{
	static struct info info;
	struct bench_args args = {"wreath info", options, argc, argv, 0, false};
	const char *value;
	const struct base_env *env = NULL;
	int found = bench_read(&args, &info, &value);

	if (found == BENCH_HELP) {
		bench_usage(stdout, usage_line, usage_text, options);
		return BENCH_OK;
	}
	if (found == BENCH_OPERAND)
		bench_refuse(&args, "'%.64s' is not wanted here", value);
	if (found != BENCH_END)
		return BENCH_USAGE;
	gethostname(info.host, sizeof(info.host) - 1);
	info.has_env = !base_env_load(&info.env);
	if (!info.has_env)
		bench_refuse(&args, "%s", wreath_error_text());
	if (info.has_env)
		env = &info.env;
	info_probe(verbs_ibv, "libibverbs", env, &info.sources[0]);
	info_probe(soft_table, "soft", env, &info.sources[1]);
	info_probe_cm(info.no_cm);
	if (env) {
		info_probe_rails(env, true, &info.near);
		info_probe_rails(env, false, &info.far);
	}
	info_probe_gpus(env, &info.sources[0], verbs_ibv, &info.sources[1],
			soft_table, &info.gpus);
	if (info.as_json)
		print_json(&info);
	else
		print(&info);
	info_release(&info.sources[0]);
	info_release(&info.sources[1]);
	return info.has_env ? BENCH_OK : BENCH_FAILED;
}
