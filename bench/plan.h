/* SPDX-License-Identifier: MIT */
/*
 * What the files of `wreath plan` share.  Times are seconds, rates bytes a
 * second in one direction.
 */
#ifndef PLAN_H
#define PLAN_H

#include "bench/bench.h"
#include "sched/sched.h"

enum plan_fabric_name {
	PLAN_IB,
	PLAN_ROCE,
	PLAN_NODE,
	PLAN_N_FABRICS,
};

struct plan_input {
	double params, bytes, step_ms, overlap, efficiency, max_exposed;
	int64_t tp, pp, dp, rails, ranks_per_node, dp_per_node;
	uint64_t bucket, slot;
	int fabric; /* enum plan_fabric_name, or PLAN_N_FABRICS: all */
	bool json, sources;
	/* As written; NULL: the default. */
	const char *nic_text, *nvlink_text, *memory_text;
	const char *latency_text[PLAN_N_FABRICS];
	double nic, nvlink, memory, latency[PLAN_N_FABRICS];
};

/* What follows from the input alone. */
struct plan_need {
	double gradient; /* bytes of a rank */
	double traffic;	 /* bytes that it sends, and receives as many */
	double window;	 /* seconds in which they can hide */
	double rate;	 /* that this takes */
	int n_nodes;	 /* that a group of dp ranks is spread over */
	double n_ranks;	 /* of all groups together */
	double n_buckets;
};

struct plan_engine {
	bool has_form;
	double bucket; /* seconds of a full one */
	double total, hidden, exposed;
};

/* 0: does not help, whatever its value. */
struct plan_advice {
	double rails, nic;
	double bucket; /* the best: bytes */
	double bucket_exposed;
	double step; /* seconds of a step that hides enough */
};

struct plan_result {
	enum plan_fabric_name fabric;
	double rate, latency; /* of a rank */
	struct plan_engine engines[SCHED_N_ALGOS];
	enum sched_algo best;
	bool suffices;
	struct plan_advice advice; /* where it does not suffice */
};

extern const char *const plan_fabrics[PLAN_N_FABRICS + 2];

/* ---- plan_model.c ---- */

void plan_need(const struct plan_input *input, struct plan_need *need);
/* False: no memory, or no engine; the text of the library says it. */
bool plan_predict(const struct plan_input *input, const struct plan_need *need,
		  enum plan_fabric_name fabric, struct plan_result *result);

/* ---- plan_report.c ---- */

void plan_report(const struct plan_input *input, const struct plan_need *need,
		 const struct plan_result *results, int n_results);
void plan_json(const struct plan_input *input, const struct plan_need *need,
	       const struct plan_result *results, int n_results);
/* Where the defaults come from. */
void plan_sources(void);

#endif
