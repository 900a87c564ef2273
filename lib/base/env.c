/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

extern char **environ;

/* The order of enum base_env_name, which is the alphabet's. */
static const struct base_env_var table[BASE_N_ENV] = {
	[BASE_ENV_ALGO] = {"WREATH_ALGO", BASE_ENV_ENUM, "auto", 0, 0,
			   "auto ring oneshot twoshot tree split-ring halving "
			   "direct",
			   "The algorithm of collectives that have it; auto "
			   "chooses by size, ranks and what reaches them."},
	[BASE_ENV_ARRIVAL] = {"WREATH_ARRIVAL", BASE_ENV_ENUM, "auto", 0, 0,
			      "auto completion",
			      "How arrivals are noticed: by polling memory "
			      "where the device promises line order (auto), "
			      "or always by completions."},
	[BASE_ENV_CHANNELS] = {"WREATH_CHANNELS", BASE_ENV_INT, "1", 1, 4,
			       NULL,
			       "Queue pairs per pair of ranks, each with its "
			       "share of the vector."},
	[BASE_ENV_COMM_ID] = {"WREATH_COMM_ID", BASE_ENV_STRING, "", 0, 511,
			      NULL,
			      "The unique id, as 256 hexadecimal digits, or "
			      "@FILE to read them from a private file."},
	[BASE_ENV_CONNECT] = {"WREATH_CONNECT", BASE_ENV_ENUM, "exchange", 0, 0,
			      "exchange cm",
			      "How queue pairs are connected: by an exchange "
			      "of addresses between the ranks, or by "
			      "librdmacm."},
	[BASE_ENV_GID_INDEX] = {"WREATH_GID_INDEX", BASE_ENV_INT, "-1", -1,
				255, NULL,
				"The GID to use on Ethernet ports; -1 "
				"chooses."},
	[BASE_ENV_GPU] = {"WREATH_GPU", BASE_ENV_ENUM, "auto", 0, 0,
			  "auto off",
			  "Whether memory of GPUs may be used, where the "
			  "process has CUDA."},
	[BASE_ENV_GPU_DIRECT] = {"WREATH_GPU_DIRECT", BASE_ENV_ENUM, "auto",
				 0, 0, "auto dmabuf peermem off",
				 "How devices reach memory of GPUs: by DMA-BUF, "
				 "by nvidia-peermem, or not, through memory of "
				 "the host; auto tries them in that order."},
	[BASE_ENV_GPU_IMAGE] = {"WREATH_GPU_IMAGE", BASE_ENV_STRING, "", 0,
				511, NULL,
				"A file with the kernels (cubin or fatbin), in "
				"place of those that are built in."},
	[BASE_ENV_GPU_IPC] = {"WREATH_GPU_IPC", BASE_ENV_ENUM, "auto", 0, 0,
			      "auto off",
			      "Whether ranks of a host reach each other's "
			      "memory of GPUs by CUDA IPC."},
	[BASE_ENV_GPU_REDUCE] = {"WREATH_GPU_REDUCE", BASE_ENV_ENUM, "auto",
				 0, 0, "auto gpu host",
				 "Where vectors in memory of GPUs are combined: "
				 "by kernels (gpu), or staged, by the processor "
				 "(host); auto takes kernels where there are "
				 "any."},
	[BASE_ENV_HCA] = {"WREATH_HCA", BASE_ENV_STRING, "", 0, 511, NULL,
			  "The devices to choose from: a list of NAME or "
			  "NAME:PORT; empty is all."},
	[BASE_ENV_JOIN_TIMEOUT] = {"WREATH_JOIN_TIMEOUT", BASE_ENV_DURATION,
				   "60s", 100, 86400000, NULL,
				   "How long ranks wait for each other when a "
				   "communicator is made."},
	[BASE_ENV_LOG] = {"WREATH_LOG", BASE_ENV_ENUM, "warn", 0, 0,
			  "off error warn info debug",
			  "What is written to stderr."},
	[BASE_ENV_NODE] = {"WREATH_NODE", BASE_ENV_INT, "-1", -1, 65535, NULL,
			   "Ranks of one number pretend to be a node, apart "
			   "from those of others; -1: hosts are nodes."},
	[BASE_ENV_N_RANKS] = {"WREATH_N_RANKS", BASE_ENV_INT, "1", 1, 65536,
			      NULL,
			      "The number of ranks, with WREATH_RANK and "
			      "WREATH_COMM_ID."},
	[BASE_ENV_PKEY] = {"WREATH_PKEY", BASE_ENV_INT, "65535", 1, 65535,
			   NULL, "The partition key, by value."},
	[BASE_ENV_QP_TIMEOUT] = {"WREATH_QP_TIMEOUT", BASE_ENV_DURATION,
				 "4s", 10, 600000, NULL,
				 "How long a queue pair tries again before it "
				 "gives up on a silent peer."},
	[BASE_ENV_RANK] = {"WREATH_RANK", BASE_ENV_INT, "0", 0, 65535, NULL,
			   "This process's rank, with WREATH_N_RANKS and "
			   "WREATH_COMM_ID."},
	[BASE_ENV_SL] = {"WREATH_SL", BASE_ENV_INT, "0", 0, 15, NULL,
			 "The service level."},
	[BASE_ENV_SLOTS] = {"WREATH_SLOTS", BASE_ENV_INT, "4", 2, 8, NULL,
			    "Slots per lane and peer."},
	[BASE_ENV_SLOT_BYTES] = {"WREATH_SLOT_BYTES", BASE_ENV_SIZE, "0", 0,
				 1 << 20, NULL,
				 "The size of a slot, 0 chooses: larger where "
				 "ranks outnumber cores."},
	[BASE_ENV_SOCKET_IFNAME] = {"WREATH_SOCKET_IFNAME", BASE_ENV_STRING,
				    "", 0, 511, NULL,
				    "The network interface that ranks meet "
				    "on; empty chooses."},
	[BASE_ENV_SOFT] = {"WREATH_SOFT", BASE_ENV_STRING, "roce:1", 0, 511,
			   NULL,
			   "The soft devices: a list of ib:N and roce:N, "
			   "each with @RATE+LATENCY if wanted, or off."},
	[BASE_ENV_SOFT_FAULTS] = {"WREATH_SOFT_FAULTS", BASE_ENV_STRING, "",
				  0, 511, NULL,
				  "Faults for the soft device to inject; "
				  "wreath_env(7) has the words."},
	[BASE_ENV_SPIN] = {"WREATH_SPIN", BASE_ENV_INT, "-1", -1, 1000000,
			   NULL,
			   "Pauses before a waiting rank yields; -1 chooses "
			   "by cores and ranks."},
	[BASE_ENV_TIMEOUT] = {"WREATH_TIMEOUT", BASE_ENV_DURATION, "30s", 100,
			      86400000, NULL,
			      "The deadline: how long an operation may make "
			      "no progress."},
	[BASE_ENV_TRAFFIC_CLASS] = {"WREATH_TRAFFIC_CLASS", BASE_ENV_INT, "-1",
				    -1, 255, NULL,
				    "The traffic class on Ethernet; -1 takes "
				    "106 (DSCP 26)."},
	[BASE_ENV_TUNING] = {"WREATH_TUNING", BASE_ENV_STRING, "", 0, 511,
			     NULL,
			     "A file of rules that choose algorithms, and of "
			     "what the machine is known to take; "
			     "wreath_tuning(5) has the words."},
};

const struct base_env_var *base_env_table(void)
{
	return table;
}

const char *base_env_foreign(const char *name)
{
	return secure_getenv(name);
}

bool base_parse_int(const char *text, int64_t min, int64_t max, int64_t *out)
{
	char *end;
	long long value;

	/* strtoll() skips blanks and takes a plus: neither is a number. */
	if (!(text[0] == '-' || (text[0] >= '0' && text[0] <= '9')))
		return false;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end || value < min || value > max)
		return false;
	*out = value;
	return true;
}

bool base_parse_size(const char *text, uint64_t *out)
{
	static const char units[] = "KMGT";
	char *end;
	unsigned long long value;
	const char *unit;
	unsigned int shift = 0;

	if (!(text[0] >= '0' && text[0] <= '9'))
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno)
		return false;
	if (*end) {
		char upper = (char)(*end & ~0x20);

		unit = strchr(units, upper);
		if (!unit || !upper || end[1])
			return false;
		shift = 10 * (unsigned int)(unit - units + 1);
	}
	if (value > UINT64_MAX >> shift)
		return false;
	*out = (uint64_t)value << shift;
	return true;
}

bool base_parse_duration(const char *text, int64_t *out_ms)
{
	static const struct {
		const char *unit;
		int64_t ms;
	} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"", 1000}};
	char *end;
	long long value;
	size_t i;

	if (!(text[0] >= '0' && text[0] <= '9'))
		return false;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno)
		return false;
	for (i = 0; i < base_countof(units); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		return !__builtin_mul_overflow(value, units[i].ms, out_ms);
	}
	return false;
}

static bool parse_word(const char *words, const char *text, int64_t *out)
{
	size_t length = strlen(text);
	int64_t at = 0;

	while (*words) {
		size_t n = strcspn(words, " ");

		if (n == length && !memcmp(words, text, n)) {
			*out = at;
			return true;
		}
		words += n + (words[n] == ' ');
		at++;
	}
	return false;
}

static int refuse(const struct base_env_var *var, const char *text)
{
	/* A value may be 10 kB of anything: show its beginning only. */
	switch (var->kind) {
	case BASE_ENV_ENUM:
		return base_error(WREATH_EINVAL,
				  "%s='%.64s' is not one of: %s", var->name,
				  text, var->words);
	case BASE_ENV_STRING:
		return base_error(WREATH_EINVAL,
				  "%s='%.64s...' is longer than %" PRId64
				  " characters", var->name, text, var->max);
	case BASE_ENV_DURATION:
		return base_error(WREATH_EINVAL,
				  "%s='%.64s' is not a duration from %" PRId64
				  "ms to %" PRId64 "s, such as 500ms, 30s or "
				  "2m", var->name, text, var->min,
				  var->max / 1000);
	case BASE_ENV_SIZE:
		return base_error(WREATH_EINVAL,
				  "%s='%.64s' is not a size from %" PRId64
				  " to %" PRId64 " bytes, such as 64K",
				  var->name, text, var->min, var->max);
	case BASE_ENV_INT:
		break;
	}
	return base_error(WREATH_EINVAL,
			  "%s='%.64s' is not a whole number from %" PRId64
			  " to %" PRId64, var->name, text, var->min, var->max);
}

static bool parse(const struct base_env_var *var, const char *text,
		  int64_t *out)
{
	uint64_t bytes;

	switch (var->kind) {
	case BASE_ENV_INT:
		return base_parse_int(text, var->min, var->max, out);
	case BASE_ENV_SIZE:
		if (!base_parse_size(text, &bytes) || bytes > INT64_MAX)
			return false;
		*out = (int64_t)bytes;
		return *out >= var->min && *out <= var->max;
	case BASE_ENV_DURATION:
		return base_parse_duration(text, out) && *out >= var->min &&
		       *out <= var->max;
	case BASE_ENV_ENUM:
		return parse_word(var->words, text, out);
	case BASE_ENV_STRING:
		*out = 0;
		return (int64_t)strlen(text) <= var->max;
	}
	return false;
}

unsigned int base_distance(const char *a, const char *b)
{
	unsigned int row[64];
	size_t la = strlen(a);
	size_t lb = strlen(b);
	size_t i, j;

	if (la >= base_countof(row) || lb >= base_countof(row))
		return 99;
	for (j = 0; j <= lb; j++)
		row[j] = (unsigned int)j;
	for (i = 1; i <= la; i++) {
		unsigned int diagonal = row[0];

		row[0] = (unsigned int)i;
		for (j = 1; j <= lb; j++) {
			unsigned int best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[lb];
}

static void warn_unknown(const char *name)
{
	unsigned int best = 99;
	const char *nearest = NULL;
	size_t i;

	for (i = 0; i < BASE_N_ENV; i++) {
		unsigned int d = base_distance(name, table[i].name);

		if (!strcmp(name, table[i].name))
			return;
		if (d < best) {
			best = d;
			nearest = table[i].name;
		}
	}
	/* More than five letters off is another word, not a slip. */
	if (nearest && best <= 5)
		base_log(BASE_LOG_WARN,
			 "unknown variable %.64s is ignored; did you mean %s?",
			 name, nearest);
	else
		base_log(BASE_LOG_WARN,
			 "unknown variable %.64s is ignored; wreath_env(7) "
			 "lists those that exist", name);
}

static void warn_unknown_once(void)
{
	static _Atomic bool done;
	char **at;

	if (atomic_exchange(&done, true))
		return;
	for (at = environ; at && *at; at++) {
		char name[128];
		size_t n = strcspn(*at, "=");

		if (strncmp(*at, "WREATH_", 7))
			continue;
		snprintf(name, sizeof(name), "%.*s",
			 (int)base_min_size(n, sizeof(name) - 1), *at);
		warn_unknown(name);
	}
}

int base_env_load(struct base_env *env)
{
	size_t i;

	memset(env, 0, sizeof(*env));
	for (i = 0; i < BASE_N_ENV; i++) {
		const struct base_env_var *var = &table[i];
		const char *text = secure_getenv(var->name);

		env->is_set[i] = text != NULL;
		if (!text)
			text = var->fallback;
		if (!parse(var, text, &env->value[i]))
			return refuse(var, text);
		snprintf(env->text[i], sizeof(env->text[i]), "%s", text);
	}
	base_log_level_set((enum base_log_level)env->value[BASE_ENV_LOG]);
	warn_unknown_once();
	return 0;
}
