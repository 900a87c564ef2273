/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "test/loop/model.h"

/* A type of number, by its bits. */
struct form {
	int bytes;
	bool is_float, is_signed;
	int exponent, mantissa; /* bits of a float */
	bool has_infinity;
	/* For exact sums of up to 16 ranks: integers up to this. */
	int64_t few;
};

static const struct form forms[WREATH_N_TYPES] = {
	[WREATH_INT8] = {1, false, true, 0, 0, false, 0},
	[WREATH_UINT8] = {1, false, false, 0, 0, false, 0},
	[WREATH_INT16] = {2, false, true, 0, 0, false, 0},
	[WREATH_UINT16] = {2, false, false, 0, 0, false, 0},
	[WREATH_INT32] = {4, false, true, 0, 0, false, 0},
	[WREATH_UINT32] = {4, false, false, 0, 0, false, 0},
	[WREATH_INT64] = {8, false, true, 0, 0, false, 0},
	[WREATH_UINT64] = {8, false, false, 0, 0, false, 0},
	[WREATH_FLOAT16] = {2, true, true, 5, 10, true, 128},
	[WREATH_BFLOAT16] = {2, true, true, 8, 7, true, 16},
	[WREATH_FLOAT32] = {4, true, true, 8, 23, true, 1 << 20},
	[WREATH_FLOAT64] = {8, true, true, 11, 52, true, 1 << 30},
	[WREATH_FLOAT8E4M3] = {1, true, true, 4, 3, false, 1},
	[WREATH_FLOAT8E5M2] = {1, true, true, 5, 2, true, 1},
};

static uint64_t mask_of(const struct form *form)
{
	return ~UINT64_C(0) >> (64 - 8 * form->bytes);
}

static uint64_t load(const struct form *form, const void *data, size_t i)
{
	uint64_t bits = 0;

	/* The least byte comes first on every machine that this runs on. */
	memcpy(&bits, (const char *)data + i * (size_t)form->bytes,
	       (size_t)form->bytes);
	return bits;
}

static double decode(const struct form *form, uint64_t bits)
{
	int top = (1 << form->exponent) - 1;
	int bias = top >> 1;
	uint64_t fraction = bits & ((UINT64_C(1) << form->mantissa) - 1);
	int exponent = (int)(bits >> form->mantissa) & top;
	bool is_negative = bits >> (form->exponent + form->mantissa) & 1;
	double size;

	if (exponent == top && form->has_infinity) {
		size = fraction ? (double)NAN : (double)INFINITY;
	} else if (exponent == top && fraction == 7) {
		size = (double)NAN; /* E4M3: all ones */
	} else if (exponent) {
		fraction |= UINT64_C(1) << form->mantissa;
		size = ldexp((double)fraction,
			     exponent - bias - form->mantissa);
	} else {
		size = ldexp((double)fraction, 1 - bias - form->mantissa);
	}
	return is_negative ? -size : size;
}

/* To nearest, ties to even; a NaN becomes the canonical one. */
static uint64_t encode(const struct form *form, double value)
{
	int top = (1 << form->exponent) - 1;
	int bias = top >> 1;
	uint64_t sign = signbit(value) ? UINT64_C(1) << (form->exponent +
							 form->mantissa)
				       : 0;
	uint64_t infinity = (uint64_t)top << form->mantissa;
	uint64_t bits;
	int exponent;
	double scaled;

	if (!form->has_infinity)
		infinity = 0x7f; /* E4M3 has a NaN there */
	if (isnan(value))
		return form->has_infinity
			       ? infinity | UINT64_C(1) << (form->mantissa - 1)
			       : infinity;
	if (isinf(value))
		return form->has_infinity ? sign | infinity : infinity;
	if (value == 0)
		return sign;
	exponent = ilogb(value);
	if (exponent < 1 - bias)
		exponent = 1 - bias;
	scaled = rint(ldexp(fabs(value), form->mantissa - exponent));
	/* A carry out of the fraction walks into the exponent by itself. */
	bits = (uint64_t)scaled;
	if (bits >> form->mantissa)
		bits += (uint64_t)(exponent + bias - 1) << form->mantissa;
	if (bits >= infinity)
		return form->has_infinity ? sign | infinity : infinity;
	return sign | bits;
}

static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static uint64_t exact_bits(const struct model *model, const struct form *form,
			   int rank, size_t i, uint64_t any)
{
	/* Which ranks give little: others from one index to the next. */
	size_t turn = (i * 7 + (size_t)rank) % 16;

	switch (model->op) {
	case WREATH_SUM:
	case WREATH_AVG:
		/* E5M2 counts to 8 only: half of the ranks give zero. */
		if (form->mantissa == 2 && turn % 2)
			return 0;
		any %= (uint64_t)(2 * form->few + 1);
		return encode(form, (double)((int64_t)any - form->few));
	case WREATH_PROD:
		/* Powers of two, few of which are not one. */
		return encode(form, ldexp(any & 8 ? -1.0 : 1.0,
					  turn < 4 ? (int)(any % 3) - 1 : 0));
	default:
		return any & mask_of(form);
	}
}

static uint64_t input(const struct model *model, int rank, size_t i)
{
	const struct form *form = &forms[model->type];
	uint64_t any = mix(model->seed ^ mix((uint64_t)rank << 40 ^ i));

	if (!form->is_float)
		return any & mask_of(form);
	if (model->kind == MODEL_EXACT)
		return exact_bits(model, form, rank, i, any);
	/* In [1, 2): no sum or product loses all of its digits. */
	return encode(form, 1.0 + (double)(any >> 12) / (double)(1ull << 52));
}

void model_fill(const struct model *model, int rank, void *out, size_t count)
{
	const struct form *form = &forms[model->type];
	size_t i;

	for (i = 0; i < count; i++) {
		uint64_t bits = input(model, rank, i);

		memcpy((char *)out + i * (size_t)form->bytes, &bits,
		       (size_t)form->bytes);
	}
}

static int64_t extend(const struct form *form, uint64_t bits)
{
	int shift = 64 - 8 * form->bytes;

	return (int64_t)(bits << shift) >> shift;
}

static bool is_less(const struct form *form, uint64_t a, uint64_t b)
{
	if (form->is_signed)
		return extend(form, a) < extend(form, b);
	return a < b;
}

static uint64_t combine_integers(const struct model *model, size_t i)
{
	const struct form *form = &forms[model->type];
	uint64_t all = input(model, 0, i);
	uint64_t n = (uint64_t)model->n_ranks;
	int rank;

	for (rank = 1; rank < model->n_ranks; rank++) {
		uint64_t one = input(model, rank, i);

		switch (model->op) {
		case WREATH_PROD:
			all *= one;
			break;
		case WREATH_MIN:
			all = is_less(form, one, all) ? one : all;
			break;
		case WREATH_MAX:
			all = is_less(form, all, one) ? one : all;
			break;
		default:
			all += one;
		}
	}
	all &= mask_of(form);
	if (model->op != WREATH_AVG)
		return all;
	if (form->is_signed)
		all = (uint64_t)(extend(form, all) / (int64_t)n);
	else
		all /= n;
	return all & mask_of(form);
}

/* -0 is less than +0, and a NaN is the result whatever the other. */
static double pick(double a, double b, bool want_less)
{
	bool a_is_less;

	if (isnan(a) || isnan(b))
		return (double)NAN;
	a_is_less = a < b || (a == b && signbit(a));
	return a_is_less == want_less ? a : b;
}

static double combine_floats(const struct model *model, size_t i)
{
	const struct form *form = &forms[model->type];
	double all = decode(form, input(model, 0, i));
	int rank;

	for (rank = 1; rank < model->n_ranks; rank++) {
		double one = decode(form, input(model, rank, i));

		switch (model->op) {
		case WREATH_PROD:
			all *= one;
			break;
		case WREATH_MIN:
		case WREATH_MAX:
			all = pick(all, one, model->op == WREATH_MIN);
			break;
		default:
			all += one;
		}
	}
	if (model->op != WREATH_AVG)
		return all;
	/* Narrow types are divided in float32, and rounded from there. */
	if (form->bytes < 8)
		return (double)((float)all / (float)model->n_ranks);
	return all / model->n_ranks;
}

/* The last digit of the narrow type, once a rank. */
static bool is_near(const struct model *model, double got, double want)
{
	const struct form *form = &forms[model->type];
	double step = ldexp(1.0, -form->mantissa);

	if (model->kind == MODEL_EXACT || model->op == WREATH_MIN ||
	    model->op == WREATH_MAX)
		return false;
	/* What is out of range may end just within it, or the reverse. */
	if (isnan(got) || isinf(got))
		return encode(form, want * (1 - step * model->n_ranks)) >=
		       encode(form, got);
	return fabs(got - want) <= fabs(want) * step * (model->n_ranks + 1);
}

bool model_check(const struct model *model, const void *got, size_t count,
		 char text[256])
{
	const struct form *form = &forms[model->type];
	size_t i;

	for (i = 0; i < count; i++) {
		uint64_t bits = load(form, got, i);
		uint64_t want;
		double exact = 0;

		/* One rank alone gets its own bits, whatever they are. */
		if (model->n_ranks == 1) {
			want = input(model, 0, i);
		} else if (form->is_float) {
			exact = combine_floats(model, i);
			want = encode(form, exact);
		} else {
			want = combine_integers(model, i);
		}
		if (bits == want || (form->is_float && model->n_ranks > 1 &&
				     is_near(model, decode(form, bits), exact)))
			continue;
		snprintf(text, 256,
			 "element %zu of %zu (type %d, op %d) of %d ranks is "
			 "0x%llx and should be 0x%llx (%g and %g)", i, count,
			 (int)model->type, (int)model->op, model->n_ranks,
			 (unsigned long long)bits, (unsigned long long)want,
			 form->is_float ? decode(form, bits) : (double)bits,
			 form->is_float ? exact : (double)want);
		return false;
	}
	return true;
}

uint64_t model_hash(const void *data, size_t bytes)
{
	const unsigned char *at = data;
	uint64_t hash = bytes;

	for (; bytes >= 8; bytes -= 8, at += 8) {
		uint64_t word;

		memcpy(&word, at, 8);
		hash = (hash ^ word) * UINT64_C(0x9fb21c651e98df25);
		hash ^= hash >> 32;
	}
	for (; bytes; bytes--)
		hash = (hash ^ *at++) * UINT64_C(0x9fb21c651e98df25);
	return hash ^ hash >> 29;
}
