/* SPDX-License-Identifier: MIT */
/*
 * Vectors whose reduction is known, and whose every piece is known again
 * wherever it was moved to.
 *
 * Of what is only moved any bits will do, and every rank has its own.  Where
 * ranks reduce, the values are chosen so that the exact result can be written
 * in the type, whatever the order in which the ranks are combined: integers
 * wrap; floats add small whole numbers, and multiply powers of two.  Then a
 * result is right when its bits are.  Only an average of floats may have to be
 * rounded, and may be one representable value off.
 *
 * The contents repeat: a table of PERIOD elements is laid out again and again,
 * each time from another place in it, so that filling and comparing run at the
 * speed of memory, and no two regular pieces of a vector are alike.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/perf_measure.h"

/* A prime, so that it is no part of a slot's or a chunk's length. */
#define PERIOD 1021
/* Where the next period starts in the table; any number but 0 does. */
#define STRIDE 397

/* No input is a multiple of this byte for long. */
#define BLANK 0xa5

struct perf_pattern {
	enum wreath_type type;
	int op; /* enum wreath_op, or PERF_NO_OP */
	int rank;
	size_t size;
	unsigned int tolerance; /* in representable values */
	/* The table twice, for a period from anywhere in it. */
	unsigned char *input;
	unsigned char *result; /* without an operation: what @source gives */
	int source;
};

/* A number that looks random (splitmix64's last steps). */
static uint64_t hash(uint64_t rank, uint64_t i)
{
	uint64_t x = (rank << 32 | i) + 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/*
 * A whole number that the type and every partial sum can hold: 2^(mantissa+1)
 * is the greatest up to which all can.  Where there are more ranks than that,
 * only some give anything but 0, others at each element.
 */
static double term(const struct perf_type *format, int rank, int n_ranks,
		   int i)
{
	uint64_t x = hash((uint64_t)rank, (uint64_t)i);
	int64_t most = 1ll << (format->mantissa + 1);
	int64_t share = most / n_ranks;

	if (!share) {
		if ((rank + i) % n_ranks >= most)
			return 0;
		share = 1;
	}
	/* Beyond 2^20 more digits would test nothing more. */
	if (share > 1 << 20)
		share = 1 << 20;
	return (double)((int64_t)(x % (2 * (uint64_t)share + 1)) - share);
}

/*
 * A power of two with a sign, such that 6 ranks at most give another than 1:
 * partial products stay within 2^-6 and 2^6, which even E4M3 has exactly.
 */
static double factor(int rank, int n_ranks, int i)
{
	static const double powers[] = {0.5, 1, 2, 2};
	uint64_t x = hash((uint64_t)rank, (uint64_t)i);
	double sign = x & 4 ? -1 : 1;

	return (rank + i) % n_ranks < 6 ? sign * powers[x & 3] : sign;
}

static double float_result(enum wreath_op op, const double *values, int n)
{
	double result = values[0];
	int r;

	for (r = 1; r < n; r++) {
		double value = values[r];

		if (op == WREATH_SUM || op == WREATH_AVG)
			result += value;
		else if (op == WREATH_PROD)
			result *= value;
		else if (op == WREATH_MIN ? value < result : value > result)
			result = value;
	}
	return op == WREATH_AVG ? result / n : result;
}

static void float_element(struct perf_pattern *pattern, enum wreath_op op,
			  int rank, int n_ranks, int i, double *values)
{
	const struct perf_type *format = &perf_types[pattern->type];
	int r;

	for (r = 0; r < n_ranks; r++)
		values[r] = op == WREATH_PROD ? factor(r, n_ranks, i)
					      : term(format, r, n_ranks, i);
	perf_encode(pattern->type, values[rank],
		    pattern->input + (size_t)i * pattern->size);
	perf_encode(pattern->type, float_result(op, values, n_ranks),
		    pattern->result + (size_t)i * pattern->size);
}

static bool is_less(bool is_signed, uint64_t a, uint64_t b)
{
	return is_signed ? (int64_t)a < (int64_t)b : a < b;
}

/* Cut to @bits, and extended again by the type's sign. */
static uint64_t wrap(uint64_t value, bool is_signed, int bits)
{
	int unused = 64 - bits;

	return is_signed ? (uint64_t)((int64_t)(value << unused) >> unused)
			 : value << unused >> unused;
}

static void int_element(struct perf_pattern *pattern, enum wreath_op op,
			int rank, int n_ranks, int i)
{
	bool is_signed = perf_types[pattern->type].is_signed;
	int bits = 8 * (int)pattern->size;
	uint64_t result = wrap(hash(0, (uint64_t)i), is_signed, bits);
	uint64_t mine = wrap(hash((uint64_t)rank, (uint64_t)i), is_signed,
			     bits);
	int r;

	for (r = 1; r < n_ranks; r++) {
		uint64_t value = wrap(hash((uint64_t)r, (uint64_t)i),
				      is_signed, bits);

		if (op == WREATH_SUM || op == WREATH_AVG)
			result += value;
		else if (op == WREATH_PROD)
			result *= value;
		else if (is_less(is_signed, value, result) ==
			 (op == WREATH_MIN))
			result = value;
	}
	result = wrap(result, is_signed, bits);
	if (op == WREATH_AVG && is_signed)
		result = (uint64_t)((int64_t)result / n_ranks);
	else if (op == WREATH_AVG)
		result /= (unsigned int)n_ranks;
	/* Little-endian: the low bytes come first. */
	memcpy(pattern->input + (size_t)i * pattern->size, &mine,
	       pattern->size);
	memcpy(pattern->result + (size_t)i * pattern->size, &result,
	       pattern->size);
}

/* What @rank gives where nothing is reduced. */
static void moved_element(const struct perf_pattern *pattern, int rank, int i,
			  unsigned char *table)
{
	uint64_t bits = hash((uint64_t)rank, (uint64_t)i);

	memcpy(table + (size_t)i * pattern->size, &bits, pattern->size);
}

/* For a period from anywhere in it. */
static void repeat(const struct perf_pattern *pattern, unsigned char *table)
{
	size_t bytes = PERIOD * pattern->size;

	memcpy(table + bytes, table, bytes);
}

struct perf_pattern *perf_pattern_new(enum wreath_type type, int op, int rank,
				      int n_ranks)
{
	struct perf_pattern *pattern = calloc(1, sizeof(*pattern));
	double *values = malloc((size_t)n_ranks * sizeof(*values));
	int i;

	if (!pattern || !values)
		goto err_free;
	pattern->type = type;
	pattern->op = op;
	pattern->rank = rank;
	pattern->source = PERF_REDUCED;
	pattern->size = wreath_type_size(type);
	if (op == WREATH_AVG && perf_types[type].is_float)
		pattern->tolerance = 1;
	pattern->input = malloc(2 * PERIOD * pattern->size);
	pattern->result = calloc(2 * PERIOD, pattern->size);
	if (!pattern->input || !pattern->result)
		goto err_free;
	for (i = 0; i < PERIOD; i++) {
		if (op == PERF_NO_OP)
			moved_element(pattern, rank, i, pattern->input);
		else if (perf_types[type].is_float)
			float_element(pattern, (enum wreath_op)op, rank,
				      n_ranks, i, values);
		else
			int_element(pattern, (enum wreath_op)op, rank, n_ranks,
				    i);
	}
	repeat(pattern, pattern->input);
	repeat(pattern, pattern->result);
	free(values);
	return pattern;

err_free:
	perf_pattern_free(pattern);
	free(values);
	return NULL;
}

void perf_pattern_free(struct perf_pattern *pattern)
{
	if (!pattern)
		return;
	free(pattern->input);
	free(pattern->result);
	free(pattern);
}

void perf_pattern_fill(const struct perf_pattern *pattern, void *buffer,
		       uint64_t count)
{
	unsigned char *to = buffer;
	size_t start = 0;

	while (count) {
		size_t n = count < PERIOD ? (size_t)count : PERIOD;

		memcpy(to, pattern->input + start * pattern->size,
		       n * pattern->size);
		to += n * pattern->size;
		count -= n;
		start = (start + STRIDE) % PERIOD;
	}
}

void perf_pattern_blank(void *buffer, uint64_t bytes)
{
	memset(buffer, BLANK, bytes);
}

/* One period, or less, that is not equal bit by bit. */
static void check_each(const struct perf_pattern *pattern,
		       const unsigned char *got, const unsigned char *want,
		       size_t n, uint64_t base, unsigned int tolerance,
		       struct perf_check *check)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const unsigned char *g = got + i * pattern->size;
		const unsigned char *w = want + i * pattern->size;

		if (!memcmp(g, w, pattern->size) ||
		    (tolerance &&
		     perf_distance(pattern->type, g, w) <= tolerance))
			continue;
		if (!check->wrong) {
			check->first = base + i;
			check->got = perf_decode(pattern->type, g);
			check->want = perf_decode(pattern->type, w);
		}
		check->wrong++;
	}
}

/* The table of @source; one of another rank is made, and kept for a while. */
static const unsigned char *find_table(struct perf_pattern *pattern,
				       int source)
{
	int i;

	if (source == pattern->rank)
		return pattern->input;
	if (source == pattern->source)
		return pattern->result;
	wreath_assert(pattern->op == PERF_NO_OP);
	for (i = 0; i < PERIOD; i++)
		moved_element(pattern, source, i, pattern->result);
	repeat(pattern, pattern->result);
	pattern->source = source;
	return pattern->result;
}

static void check_blank(const struct perf_pattern *pattern,
			const struct perf_piece *piece,
			const unsigned char *got, struct perf_check *check)
{
	unsigned char blank[sizeof(uint64_t)];
	uint64_t i;

	memset(blank, BLANK, sizeof(blank));
	for (i = 0; i < piece->count; i++)
		check_each(pattern, got + i * pattern->size, blank, 1,
			   piece->at + i, 0, check);
}

static void check_known(struct perf_pattern *pattern,
			const struct perf_piece *piece,
			const unsigned char *got, struct perf_check *check)
{
	const unsigned char *table = find_table(pattern, piece->source);
	unsigned int tolerance = piece->source == PERF_REDUCED
					 ? pattern->tolerance
					 : 0;
	uint64_t done = 0;

	while (done < piece->count) {
		uint64_t from = piece->from + done;
		size_t start = (size_t)(from / PERIOD % PERIOD) * STRIDE %
			       PERIOD;
		size_t in = (size_t)(from % PERIOD);
		size_t n = PERIOD - in;
		const unsigned char *want = table +
					    (start + in) * pattern->size;

		if (n > piece->count - done)
			n = (size_t)(piece->count - done);
		if (memcmp(got, want, n * pattern->size))
			check_each(pattern, got, want, n, piece->at + done,
				   tolerance, check);
		got += n * pattern->size;
		done += n;
	}
}

void perf_pattern_check(struct perf_pattern *pattern,
			const struct perf_piece *piece, const void *buffer,
			enum perf_fault fault, struct perf_check *check)
{
	const unsigned char *got = (const unsigned char *)buffer +
				   piece->at * pattern->size;
	int64_t before = check->wrong;

	if (piece->source == PERF_UNTOUCHED)
		check_blank(pattern, piece, got, check);
	else if (piece->count)
		check_known(pattern, piece, got, check);
	if (!before && check->wrong)
		check->fault = fault;
}
