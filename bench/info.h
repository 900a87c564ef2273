/* SPDX-License-Identifier: MIT */
/*
 * The parts of `wreath info`: probe.c asks the devices, info.c shows what they
 * said.
 */
#ifndef INFO_H
#define INFO_H

#include "bench/bench.h"
#include "verbs/verbs.h"

/* Of each kind at most: what is beyond is counted, and not shown. */
#define INFO_DEVICES_MAX 64
#define INFO_GIDS_MAX 64
#define INFO_RAILS_MAX 4
#define INFO_GPUS_MAX 16
#define INFO_WAYS_MAX 16

struct info_gid {
	int index;
	char text[48];	  /* as an IPv6 address */
	const char *type; /* "IB", "RoCE v1", "RoCE v2" */
	char address[48]; /* as the interface has it, "10.0.0.1" */
	int prefix;	  /* of its subnet; 0: unknown */
	char interface[16];  /* "": unknown */
	const char *verdict; /* "chosen", "candidate", or why not */
};

struct info_port {
	int number;
	const char *state;	/* "active", "down", ... */
	const char *link_layer; /* "InfiniBand", "Ethernet" */
	double rate_gbps;	/* 0: unknown */
	double latency_us;	/* that it was told to have, or 0 */
	int mtu;
	int lid;
	char refusal[512]; /* why the settings do not want it, or "" */
	int n_gids;
	struct info_gid gids[INFO_GIDS_MAX];
};

struct info_device {
	char name[64];
	char firmware[64];
	int n_ports;
	struct info_port *ports; /* [n_ports] */
	char error[512];	 /* "" where it could be asked */
};

/* Where devices come from: libibverbs, or the soft device. */
struct info_source {
	const char *name;
	char error[512]; /* why there are none; "" where it answered */
	int n_devices;
	struct info_device devices[INFO_DEVICES_MAX];
};

/* The rails of this rank's ports: to ranks of this host, and of others. */
struct info_rails {
	char error[512]; /* why they are not known, or "" */
	int n;
	struct {
		char name[32];
		const char *link_layer;
		double rate_gbps; /* 0: unknown */
	} rails[INFO_RAILS_MAX];
};

struct info_gpu {
	char error[512]; /* why nothing is known of it, or "" */
	char name[64];
	char pci[16];
	size_t bytes;
	int major, minor; /* of the compute capability */
	bool needs_flush; /* after what devices wrote */
	char no_kernels[128]; /* why folds are staged; "" where they are not */
	int n_ways;
	struct info_way {
		char device[64];
		char text[512]; /* how it reaches the memory, or why not */
	} ways[INFO_WAYS_MAX];
};

struct info_gpus {
	char none[512]; /* why there are none, or "" */
	int n;
	struct info_gpu gpus[INFO_GPUS_MAX];
};

/*
 * Ask for all that there is; what fails is said in the errors.  @env are the
 * settings that choose, NULL where they cannot be read.
 */
void info_probe(int (*get)(const struct verbs_table **out), const char *name,
		const struct base_env *env, struct info_source *source);
/* Can librdmacm connect here?  Why not; "" where it can. */
void info_probe_cm(char why[512]);
void info_probe_rails(const struct base_env *env, bool one_host,
		      struct info_rails *rails);
/* Of all devices in @ibv and @soft.  Starts CUDA's driver. */
void info_probe_gpus(const struct base_env *env,
		     const struct info_source *ibv,
		     int (*get_ibv)(const struct verbs_table **out),
		     const struct info_source *soft,
		     int (*get_soft)(const struct verbs_table **out),
		     struct info_gpus *gpus);
void info_print_gpus(const struct info_gpus *gpus);
/* A string, or null where it is empty. */
void info_json_text(const char *text);
void info_json_pair(const char *name, const char *value);
void info_json_gpus(const struct info_gpus *gpus);
void info_release(struct info_source *source);

#endif
