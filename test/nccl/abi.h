/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the program of NCCL share.  It is compiled with our nccl.h
 * and with NCCL's own, and knows nothing of wreath.
 */
#ifndef TEST_NCCL_ABI_H
#define TEST_NCCL_ABI_H

#include <stdbool.h>
#include <stddef.h>

#include <nccl.h>

#define MAX_RANKS 8

/* Fails the program, and says where, unless @holds. */
#define CHECK(holds) abi_check((holds), #holds, __FILE__, __LINE__)
void abi_check(bool holds, const char *what, const char *file, int line);

/* Fails the program unless @result is @wanted; the last error is shown. */
#define IS(result, wanted) abi_is((result), (wanted), #result, __FILE__, \
				  __LINE__)
#define OK(result) IS(result, ncclSuccess)
void abi_is(ncclResult_t result, ncclResult_t wanted, const char *what,
	    const char *file, int line);

/* The call is refused with @wanted, and the last error has @words. */
#define REFUSED(result, wanted, words)                                         \
	do {                                                                   \
		IS(result, wanted);                                            \
		abi_says(words, __FILE__, __LINE__);                           \
	} while (0)
void abi_says(const char *words, const char *file, int line);

/* A handle of a stream; what it is does not matter without CUDA. */
#define ANY_STREAM ((cudaStream_t)0x5eed)

/* Wait until @comm is not in progress any more, 20 s at most. */
ncclResult_t abi_await(ncclComm_t comm);
/* Wait until something has broken it. */
ncclResult_t abi_await_error(ncclComm_t comm);
void abi_nap(void);

/* Sums of one int: the rank's @mine to @wanted, and 1 of each of @n that one
 * thread has. */
void abi_sum(ncclComm_t comm, int mine, int wanted);
void abi_sum_of_ones(ncclComm_t *comms, int n);

/* Run @body as rank 0..@n_ranks - 1, each in a thread; @id is of all. */
struct abi_rank {
	int rank, n_ranks;
	ncclUniqueId id;
	void *arg;
};
void abi_threads(int n_ranks, void (*body)(struct abi_rank *rank), void *arg);
/*
 * The same in processes: this program with RANK N ID, which then calls the
 * second of these.  The last may have to be killed.
 */
void abi_processes(int n_ranks, bool is_last_killed);
void abi_be_process(char **argv, void (*body)(struct abi_rank *rank));

/* collectives.c: every operation, of @n communicators by one thread. */
void test_collectives(ncclComm_t *comms, const int *ranks, int n, int n_ranks);
void test_premul(ncclComm_t *comms, const int *ranks, int n, int n_ranks);

/* life.c, nonblocking.c, bad.c */
void test_groups(void);
void test_nonblocking(void);
void test_children(void);
void test_shrink(void);
void test_abort(void);
void test_ends(void);
void test_memory(void);
void test_configs(void);
void test_bad_input(void);
void test_refusals(void);

#endif
