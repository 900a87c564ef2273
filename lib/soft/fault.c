/* SPDX-License-Identifier: MIT */
/* WREATH_SOFT_FAULTS: its clauses, one row of the table each. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "soft/peer.h"
#include "soft/qp.h"
#include "soft/soft.h"

enum form {
	FORM_NUMBER, /* name=N */
	FORM_PAIR,   /* name=N or name=N:M */
	FORM_STATUS, /* name=STATUS@N */
	FORM_NONE,   /* name=none */
};

struct clause {
	const char *name;
	enum form form;
	size_t at, at2; /* in struct soft_faults */
	int64_t min, max;
	const char *usage, *help;
};

#define AT(field) offsetof(struct soft_faults, field)
#define COUNT 1, 1000000000000
#define MS 0, 86400000

static const struct clause clauses[] = {
	{"fail_post", FORM_NUMBER, AT(fail_post), 0, COUNT, "fail_post=N",
	 "The N-th send posted is refused with ENOMEM."},
	{"fail_recv", FORM_NUMBER, AT(fail_recv), 0, COUNT, "fail_recv=N",
	 "The N-th receive posted is refused with ENOMEM."},
	{"fail_reg", FORM_NUMBER, AT(fail_reg), 0, COUNT, "fail_reg=N",
	 "The N-th registration of memory fails with ENOMEM."},
	{"fail_qp", FORM_NUMBER, AT(fail_qp), 0, COUNT, "fail_qp=N",
	 "The N-th queue pair cannot be created: ENOMEM."},
	{"fail_cq", FORM_NUMBER, AT(fail_cq), 0, COUNT, "fail_cq=N",
	 "The N-th completion queue cannot be created: ENOMEM."},
	{"fail_alloc", FORM_NUMBER, AT(fail_alloc), 0, COUNT, "fail_alloc=N",
	 "The N-th allocation of memory in this process fails."},
	{"status", FORM_STATUS, AT(status_at), AT(status), COUNT,
	 "status=STATUS@N",
	 "The N-th send completes with STATUS, such as RETRY_EXC_ERR, and "
	 "its queue pair fails."},
	{"qp_error", FORM_NUMBER, AT(qp_error), 0, COUNT, "qp_error=N",
	 "The queue pair of the N-th send fails after it: IBV_EVENT_QP_FATAL."},
	{"port_down", FORM_PAIR, AT(port_down_ms), AT(port_down_for_ms), MS,
	 "port_down=MS[:FOR]",
	 "The port goes down after MS milliseconds, and up again FOR later."},
	{"port_up", FORM_NUMBER, AT(port_up_ms), 0, MS, "port_up=MS",
	 "The port comes up after MS milliseconds."},
	{"gid_change", FORM_NUMBER, AT(gid_change_ms), 0, MS, "gid_change=MS",
	 "After MS milliseconds the port has another GID at another index."},
	{"device_gone", FORM_NUMBER, AT(device_gone), 0, 0, 1000000000000,
	 "device_gone=N",
	 "The device is lost with the N-th send, or at once with 0."},
	{"delay", FORM_NUMBER, AT(delay_us), 0, 1, 10000000, "delay=US",
	 "Every send waits US microseconds."},
	{"memlock", FORM_NUMBER, AT(memlock), 0, 0, INT64_MAX, "memlock=BYTES",
	 "Registrations fail with ENOMEM beyond BYTES together."},
	{"chaos", FORM_NUMBER, AT(chaos), 0, 0, INT64_MAX, "chaos=SEED",
	 "Lines of a payload land in any order, queue pairs overtake each "
	 "other, receivers are not ready: decided by SEED. No line order."},
	{"bounce", FORM_NONE, AT(bounce), 0, 0, 0, "bounce=always",
	 "Another process's private memory is reached through its thread."},
	{"promise", FORM_NONE, AT(no_promise), 0, 0, 0, "promise=none",
	 "The device does not promise line order, and maps no memory."},
};

const char *soft_fault_clause(int i, const char **help)
{
	if (i < 0 || (size_t)i >= base_countof(clauses))
		return NULL;
	*help = clauses[i].help;
	return clauses[i].usage;
}

static int64_t *field(struct soft_faults *faults, size_t at)
{
	return (int64_t *)(void *)((char *)faults + at);
}

/* "RETRY_EXC_ERR" or with IBV_WC_ before it; no success. */
static bool parse_status(const char *text, size_t n, int64_t *out)
{
	int i;

	for (i = IBV_WC_SUCCESS + 1; i <= IBV_WC_TM_RNDV_INCOMPLETE; i++) {
		const char *name = verbs_wc_name((enum ibv_wc_status)i);
		const char *bare = name + strlen("IBV_WC_");

		if ((strlen(name) == n && !memcmp(name, text, n)) ||
		    (strlen(bare) == n && !memcmp(bare, text, n))) {
			*out = i;
			return true;
		}
	}
	return false;
}

/* What stands behind the sign of equality. */
static bool parse_value(const struct clause *clause, const char *text,
			struct soft_faults *faults)
{
	const char *more;
	char number[32];
	size_t n;

	switch (clause->form) {
	case FORM_NUMBER:
		return base_parse_int(text, clause->min, clause->max,
				      field(faults, clause->at));
	case FORM_PAIR:
		more = strchr(text, ':');
		n = more ? (size_t)(more - text) : strlen(text);
		if (n >= sizeof(number))
			return false;
		memcpy(number, text, n);
		number[n] = 0;
		return base_parse_int(number, clause->min, clause->max,
				      field(faults, clause->at)) &&
		       (!more ||
			base_parse_int(more + 1, clause->min, clause->max,
				       field(faults, clause->at2)));
	case FORM_STATUS:
		more = strchr(text, '@');
		return more &&
		       parse_status(text, (size_t)(more - text),
				    field(faults, clause->at2)) &&
		       base_parse_int(more + 1, clause->min, clause->max,
				      field(faults, clause->at));
	case FORM_NONE:
		if (strcmp(text, strchr(clause->usage, '=') + 1))
			return false;
		*field(faults, clause->at) = 1;
		return true;
	}
	return false;
}

static int parse_clause(const char *text, struct soft_faults *faults)
{
	const char *equals = strchr(text, '=');
	size_t n = equals ? (size_t)(equals - text) : strlen(text);
	char names[512];
	size_t i, at = 0;

	for (i = 0; i < base_countof(clauses); i++) {
		const struct clause *clause = &clauses[i];

		if (strlen(clause->name) != n || memcmp(clause->name, text, n))
			continue;
		if (equals && parse_value(clause, equals + 1, faults))
			return 0;
		return base_error(WREATH_EINVAL,
				  "WREATH_SOFT_FAULTS: '%.64s' cannot be "
				  "read; it is written %s", text,
				  clause->usage);
	}
	names[0] = 0;
	for (i = 0; i < base_countof(clauses) && at < sizeof(names); i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s",
				       i ? ", " : "", clauses[i].name);
	return base_error(WREATH_EINVAL,
			  "WREATH_SOFT_FAULTS: '%.64s' is no fault; there "
			  "are: %s", text, names);
}

static void clear(struct soft_faults *faults)
{
	size_t i;

	for (i = 0; i < base_countof(clauses); i++) {
		*field(faults, clauses[i].at) = -1;
		if (clauses[i].at2)
			*field(faults, clauses[i].at2) = -1;
	}
}

int soft_faults_parse(const char *text, struct soft_faults *faults)
{
	char copy[512];
	char *clause, *rest = NULL;
	int error;

	clear(faults);
	snprintf(copy, sizeof(copy), "%s", text);
	for (clause = strtok_r(copy, ",", &rest); clause;
	     clause = strtok_r(NULL, ",", &rest)) {
		error = parse_clause(clause, faults);
		if (error)
			return error;
	}
	return 0;
}

bool soft_fault_hits(int64_t *countdown)
{
	bool is_hit;

	/* Rarely in use: a look without the lock spares it. */
	if (__atomic_load_n(countdown, __ATOMIC_RELAXED) < 0)
		return false;
	is_hit = __atomic_sub_fetch(countdown, 1, __ATOMIC_RELAXED) == 0;
	if (is_hit)
		__atomic_store_n(countdown, -1, __ATOMIC_RELAXED);
	return is_hit;
}
