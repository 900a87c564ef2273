/* SPDX-License-Identifier: MIT */
/* wreath sim: what its files share. */
#ifndef BENCH_SIM_H
#define BENCH_SIM_H

#include "bench/bench.h"
#include "sched/sched.h"

/* Sizes of one run: from 1 byte to the largest in steps of 2. */
#define SIM_SIZES_MAX 64

struct sim_options {
	int64_t n_channels, root;
	uint64_t limit, bytes[SIM_SIZES_MAX];
	int n_bytes;
	int collective;
	unsigned int algos; /* a mask */
	bool is_plain, shows_path, json, csv;
	const char *fabric_file, *plot;
	struct sched_fabric fabric;
	unsigned int lost; /* rails, a mask */
};

/* A row of the table. */
struct sim_row {
	int algo;
	uint64_t bytes;
	char refused[256]; /* why there is no result, "": there is */
	struct sched_sim sim;
};

struct sim_report {
	const struct sim_options *options;
	struct sim_row *rows;
	int n_rows;
};

/* 0 to go on, else the exit status plus one. */
int sim_parse(int argc, char **argv, struct sim_options *options);

void sim_print_head(const struct sim_options *options);
void sim_print_row(const struct sim_options *options,
		   const struct sim_row *row);
void sim_print_path(const struct sim_options *options,
		    const struct sim_row *row);
void sim_print_csv(const struct sim_report *report);
void sim_print_json(const struct sim_report *report);

/* Draw time and bus bandwidth, or say on stderr why not. */
bool sim_plot(const struct sim_report *report, const char *path);

/* GB/s by nccl-tests' factor. */
double sim_busbw(const struct sim_options *options, const struct sim_row *row);

#endif
