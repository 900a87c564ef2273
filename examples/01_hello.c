/* SPDX-License-Identifier: MIT */
/*
 * Hello, all-reduce: every rank gives four numbers, and every rank gets the
 * sums.
 *
 *	cc 01_hello.c $(pkg-config --cflags --libs wreath) -o 01_hello
 *	wreath run -n 4 ./01_hello
 */
#include <stdio.h>
#include <wreath.h>

#define N 4

/* The sentence is the library's; the caller's part is what was tried. */
static int fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, wreath_error_text());
	return 1;
}

int main(void)
{
	struct wreath_comm *comm;
	float send[N];
	float sum[N];
	int rank;
	int i;

	if (wreath_comm_init_env(&comm))
		return fail("cannot join");
	rank = wreath_comm_rank(comm);
	for (i = 0; i < N; i++)
		send[i] = (float)(rank + 10 * i);
	if (wreath_all_reduce(send, sum, N, WREATH_FLOAT32, WREATH_SUM, comm,
			      NULL)) {
		fail("cannot reduce");
		wreath_comm_destroy(comm);
		return 1;
	}
	printf("rank %d of %d on %s: the sums are %g %g %g %g\n", rank,
	       wreath_comm_size(comm), wreath_comm_device(comm), sum[0],
	       sum[1], sum[2], sum[3]);
	return wreath_comm_destroy(comm) ? fail("cannot leave") : 0;
}
