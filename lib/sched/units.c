/* SPDX-License-Identifier: MIT */
/* Rates and times as people write them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sched.h"

static bool read_unit(const char *text, const char *const *units,
		      const double *factors, int n, double *out)
{
	char *end;
	double number;
	int unit;

	/* strtod() takes blanks, signs, words and hexadecimal digits, too. */
	if (!(text[0] >= '0' && text[0] <= '9') ||
	    strspn(text, "0123456789.") == 0 || text[1] == 'x' ||
	    text[1] == 'X')
		return false;
	number = strtod(text, &end);
	for (unit = 0; unit < n && strcmp(end, units[unit]); unit++)
		;
	if (unit == n || !isfinite(number) || number > 1e18)
		return false;
	*out = number * factors[unit];
	return true;
}

bool sched_parse_rate(const char *text, double *bytes_a_second)
{
	static const char *const units[] = {"M", "G", "T", "Mbit", "Gbit",
					    "Tbit", "MB", "GB", "TB"};
	static const double factors[] = {1e6 / 8, 1e9 / 8, 1e12 / 8,
					 1e6 / 8, 1e9 / 8, 1e12 / 8,
					 1e6, 1e9, 1e12};

	return read_unit(text, units, factors, (int)base_countof(units),
			 bytes_a_second) &&
	       *bytes_a_second > 0;
}

bool sched_parse_time(const char *text, double *seconds)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	static const double factors[] = {1e-9, 1e-6, 1e-3, 1};

	return read_unit(text, units, factors, (int)base_countof(units),
			 seconds);
}
