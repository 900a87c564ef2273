/* SPDX-License-Identifier: MIT */
/*
 * A program that has names of its own where the library has the same inside.
 * It links libwreath.a, and its functions are the ones that are called.
 */
#include <wreath.h>

int sched_make(void);
int base_error(void);
int base_now_ns(void);

int sched_make(void)
{
	return 1;
}

int base_error(void)
{
	return 2;
}

int base_now_ns(void)
{
	return 4;
}

int main(void)
{
	if (wreath_version() != WREATH_VERSION)
		return 1;
	/* The library fails, and calls its own base_error() for that. */
	if (wreath_comm_rank(NULL) != WREATH_EINVAL || !*wreath_error_text())
		return 2;
	return sched_make() + base_error() + base_now_ns() == 7 ? 0 : 3;
}
