/* SPDX-License-Identifier: MIT */
/*
 * Memory, and its registration.  In wreath a range is registered once for the
 * process; in NCCL any number of times, by each communicator.  What cannot be
 * registered is used all the same, only slower, so that is no error.
 */
#include <stdlib.h>
#include <string.h>

#include "nccl/inner.h"

struct range {
	struct range *next;
	char *base;
	size_t bytes;
	int n;		    /* registrations of it */
	bool is_registered; /* wreath has taken it */
};

/* A handle of ncclCommRegister(), or a window. */
struct registration {
	struct registration *next;
	struct range *range;
	struct ncclComm *comm;
	bool is_window;
};

static struct {
	pthread_mutex_t lock;
	struct range *ranges;
	struct registration *first;
} table = {PTHREAD_MUTEX_INITIALIZER, NULL, NULL};

ncclResult_t ncclMemAlloc(void **ptr, size_t size)
{
	static const char function[] = "ncclMemAlloc";
	int device = -1;
	int err;

	if (!ptr)
		return nccl_fail(ncclInvalidArgument, "%s: ptr is NULL",
				 function);
	*ptr = NULL;
	/* As cudaMalloc() does. */
	if (!size)
		return ncclSuccess;
	nccl_env_read();
	if (wreath_mem_device(NULL, &device))
		device = -1;
	err = device < 0 ? wreath_mem_alloc(size, ptr)
			 : wreath_mem_alloc_gpu(size, device, ptr);
	return nccl_result(err, function);
}
NCCL_ALIAS(ncclMemAlloc);

ncclResult_t ncclMemFree(void *ptr)
{
	return nccl_result(wreath_mem_free(ptr), "ncclMemFree");
}
NCCL_ALIAS(ncclMemFree);

/* Caller holds the lock. */
static struct range *range_get(void *base, size_t bytes)
{
	struct range *range;

	for (range = table.ranges; range; range = range->next)
		if (range->base == base && range->bytes == bytes)
			break;
	if (!range) {
		range = calloc(1, sizeof(*range));
		if (!range)
			return NULL;
		range->base = base;
		range->bytes = bytes;
		/* Of wreath_mem_alloc(), or a part of another range: it is
		 * known already, or has to do without. */
		range->is_registered = !wreath_mem_register(base, bytes);
		range->next = table.ranges;
		table.ranges = range;
	}
	range->n++;
	return range;
}

/* Caller holds the lock. */
static void range_put(struct range *range)
{
	struct range **at = &table.ranges;

	if (--range->n)
		return;
	if (range->is_registered)
		wreath_mem_deregister(range->base);
	while (*at != range)
		at = &(*at)->next;
	*at = range->next;
	free(range);
}

static ncclResult_t add(struct ncclComm *comm, void *base, size_t bytes,
			bool is_window, const char *function, void **out)
{
	struct registration *entry;

	if (!out || !base)
		return nccl_fail(ncclInvalidArgument, "%s: %s is NULL",
				 function, out ? "buff" : "the handle");
	if (!bytes || (uintptr_t)base + bytes < (uintptr_t)base)
		return nccl_fail(ncclInvalidArgument,
				 "%s: size is %zu, which is %s", function,
				 bytes, bytes ? "beyond the end of memory"
					      : "nothing to register");
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return nccl_fail(ncclSystemError, "%s: no memory", function);
	entry->comm = comm;
	entry->is_window = is_window;
	pthread_mutex_lock(&table.lock);
	entry->range = range_get(base, bytes);
	if (entry->range) {
		entry->next = table.first;
		table.first = entry;
	}
	pthread_mutex_unlock(&table.lock);
	if (!entry->range) {
		free(entry);
		return nccl_fail(ncclSystemError, "%s: no memory", function);
	}
	*out = entry;
	return ncclSuccess;
}

/* Takes out the entry of @comm that is @handle, or any where it is NULL. */
static bool take(const struct ncclComm *comm, const void *handle,
		 bool is_window)
{
	struct registration **at = &table.first;
	struct registration *entry;

	pthread_mutex_lock(&table.lock);
	while ((entry = *at)) {
		if (entry->comm == comm &&
		    (!handle ||
		     (entry == handle && entry->is_window == is_window)))
			break;
		at = &entry->next;
	}
	if (entry) {
		*at = entry->next;
		range_put(entry->range);
	}
	pthread_mutex_unlock(&table.lock);
	free(entry);
	return entry;
}

void nccl_memory_forget(struct ncclComm *comm)
{
	while (take(comm, NULL, false))
		;
}

static ncclResult_t do_register(struct ncclComm *comm, void *base, size_t bytes,
				bool is_window, const char *function,
				void **out)
{
	ncclResult_t result = nccl_enter(comm, function);

	if (result)
		return nccl_group_note(result);
	result = add(comm, base, bytes, is_window, function, out);
	nccl_leave(comm);
	return nccl_group_note(result);
}

static ncclResult_t deregister(struct ncclComm *comm, void *handle,
			       bool is_window, const char *function)
{
	ncclResult_t result = nccl_enter(comm, function);

	if (result)
		return nccl_group_note(result);
	/* NCCL gives none where it registers nothing, and takes it back. */
	if (handle && !take(comm, handle, is_window))
		result = nccl_fail(ncclInvalidArgument,
				   "%s: %p is not registered with this "
				   "communicator", function, handle);
	nccl_leave(comm);
	return nccl_group_note(result);
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buff, size_t size,
			      void **handle)
{
	return do_register(comm, buff, size, false, "ncclCommRegister",
			   handle);
}
NCCL_ALIAS(ncclCommRegister);

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
	return deregister(comm, handle, false, "ncclCommDeregister");
}
NCCL_ALIAS(ncclCommDeregister);

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size,
				    ncclWindow_t *win, int winFlags)
{
	static const char function[] = "ncclCommWindowRegister";
	void *handle = NULL;
	ncclResult_t result;

	if (!win || winFlags & ~NCCL_WIN_COLL_SYMMETRIC)
		return nccl_group_note(
			nccl_fail(ncclInvalidArgument,
				  "%s: win is %s, and winFlags 0x%x, of which "
				  "1 is known", function,
				  win ? "not NULL" : "NULL",
				  (unsigned int)winFlags));
	result = do_register(comm, buff, size, true, function, &handle);
	if (!result)
		*win = handle;
	return result;
}
NCCL_ALIAS(ncclCommWindowRegister);

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
	return deregister(comm, win, true, "ncclCommWindowDeregister");
}
NCCL_ALIAS(ncclCommWindowDeregister);
