/* SPDX-License-Identifier: MIT */
/* Rates and times as people write them. */
#include <math.h>
#include <string.h>

#include "sched.h"

/* Digits with a point or not: strtod() wants the locale's, and takes more. */
static const char *read_number(const char *text, double *out)
{
	double number = 0;
	double scale = 1;
	bool has_point = false;

	for (; (*text >= '0' && *text <= '9') || (*text == '.' && !has_point);
	     text++) {
		if (*text == '.') {
			has_point = true;
			continue;
		}
		number = 10 * number + (*text - '0');
		scale *= has_point ? 10 : 1;
	}
	*out = number / scale;
	return text;
}

/* @tail may follow the unit. */
static bool read_unit(const char *text, const char *const *units,
		      const double *factors, int n, const char *tail,
		      double *out)
{
	const char *end;
	double number;
	int unit;

	if (!(text[0] >= '0' && text[0] <= '9'))
		return false;
	end = read_number(text, &number);
	for (unit = 0; unit < n; unit++) {
		size_t length = strlen(units[unit]);

		if (!strncmp(end, units[unit], length) &&
		    (!end[length] || !strcmp(end + length, tail)))
			break;
	}
	if (unit == n || !isfinite(number) || number > 1e18)
		return false;
	*out = number * factors[unit];
	return true;
}

bool sched_parse_rate(const char *text, double *bytes_a_second)
{
	static const char *const units[] = {
		"K", "M", "G", "T", "Kb", "Mb", "Gb", "Tb",
		"Kbit", "Mbit", "Gbit", "Tbit", "KB", "MB", "GB", "TB",
	};
	static const double factors[] = {
		1e3 / 8, 1e6 / 8, 1e9 / 8, 1e12 / 8,
		1e3 / 8, 1e6 / 8, 1e9 / 8, 1e12 / 8,
		1e3 / 8, 1e6 / 8, 1e9 / 8, 1e12 / 8, 1e3, 1e6, 1e9, 1e12,
	};

	return read_unit(text, units, factors, (int)base_countof(units),
			 "/s", bytes_a_second) &&
	       *bytes_a_second > 0;
}

bool sched_parse_time(const char *text, double *seconds)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	static const double factors[] = {1e-9, 1e-6, 1e-3, 1};

	return read_unit(text, units, factors, (int)base_countof(units),
			 "", seconds);
}
