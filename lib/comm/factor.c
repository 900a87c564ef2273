/* SPDX-License-Identifier: MIT */
/* Operations of wreath_op_create_scaled_sum(). */
#include <string.h>

#include "comm/inner.h"

/* Where there is no other rank there are no slots, and this is enough. */
#define ALONE_BYTES 4096

/* The factor again and again, so that the product kernel takes it. */
static struct comm_factor *factor_new(const void *scalar,
				      enum wreath_type type, size_t bytes)
{
	size_t elem_bytes = wreath_type_size(type);
	struct comm_factor *factor = base_alloc(1, sizeof(*factor) + bytes);
	size_t at;

	if (!factor)
		return NULL;
	factor->n_users = 1;
	factor->type = type;
	factor->bytes = bytes;
	for (at = 0; at < bytes; at += elem_bytes)
		memcpy(factor->vector + at, scalar, elem_bytes);
	return factor;
}

void comm_factor_hold(struct comm_factor *factor)
{
	/* Whoever holds it has it from somebody who does. */
	if (base_unlikely(factor != NULL))
		atomic_fetch_add_explicit(&factor->n_users, 1,
					  memory_order_relaxed);
}

void comm_factor_drop(struct comm_factor *factor)
{
	/* Pairs with itself: the last one frees what the others have read. */
	if (base_unlikely(factor != NULL) &&
	    atomic_fetch_sub_explicit(&factor->n_users, 1,
				      memory_order_acq_rel) == 1)
		base_free(factor);
}

/* What is read here, by the processor, cannot be on a GPU. */
static int check_scalar(const void *scalar, const char *name)
{
	struct mem_where where;
	int err = mem_where(scalar, &where);

	if (err || where.kind != MEM_DEVICE)
		return err;
	return base_error(WREATH_EINVAL,
			  "%s: the scalar is in memory of GPU %d; it must be "
			  "in the host's", name, where.gpu);
}

int wreath_op_create_scaled_sum(const void *scalar, enum wreath_type type,
				struct wreath_comm *comm, enum wreath_op *op)
{
	static const char name[] = "wreath_op_create_scaled_sum";
	int err = comm_check(comm, name);
	size_t bytes;
	int i;

	if (err)
		return err;
	/* The net that says how long a vector is belongs to the thread yet. */
	if (comm_is_joining(comm))
		return comm_error(comm);
	if (!scalar || !op)
		return base_error(WREATH_EINVAL, "%s: %s is NULL", name,
				  scalar ? "op" : "scalar");
	if ((unsigned int)type >= WREATH_N_TYPES)
		return base_error(WREATH_EINVAL, "%s: type %d is not in 0..%d",
				  name, (int)type, WREATH_N_TYPES - 1);
	for (i = 0; i < COMM_OPS_MAX && comm->factors[i]; i++)
		;
	if (i == COMM_OPS_MAX)
		return base_error(WREATH_EINVAL,
				  "%s: the communicator has %d operations "
				  "already; destroy some", name, COMM_OPS_MAX);
	err = check_scalar(scalar, name);
	if (err)
		return err;
	bytes = comm->net ? comm->net->slot_bytes : ALONE_BYTES;
	if (!comm->scratch)
		comm->scratch = base_alloc(1, bytes);
	if (comm->scratch)
		comm->factors[i] = factor_new(scalar, type, bytes);
	if (!comm->factors[i])
		return WREATH_ENOMEM;
	*op = (enum wreath_op)(WREATH_OP_USER + i);
	return 0;
}

int wreath_op_destroy(enum wreath_op op, struct wreath_comm *comm)
{
	static const char name[] = "wreath_op_destroy";
	int at = (int)op - WREATH_OP_USER;
	int err = comm_check(comm, name);

	if (err)
		return err;
	if (at < 0 || at >= COMM_OPS_MAX || !comm->factors[at])
		return base_error(WREATH_EINVAL,
				  "%s: %d is no operation that was created on "
				  "this communicator", name, (int)op);
	comm_factor_drop(comm->factors[at]);
	comm->factors[at] = NULL;
	return 0;
}

void comm_factors_free(struct wreath_comm *comm)
{
	int i;

	for (i = 0; i < COMM_OPS_MAX; i++)
		comm_factor_drop(comm->factors[i]);
	base_free(comm->scratch);
	base_free(comm->lists);
	base_free(comm->talks);
	base_free(comm->queues);
}
