/* SPDX-License-Identifier: MIT */
/* Memory of GPUs between the processes of a host. */
#include <pthread.h>
#include <string.h>

#include "mem/jobs.h"

/* Exports that are kept: a program has few allocations that it communicates,
 * and asking CUDA again costs microseconds. */
#define EXPORTS 64

struct known_export {
	uint64_t id; /* 0: none */
	bool is_possible;
	struct mem_export export;
};

static struct {
	pthread_mutex_t lock;
	bool has_process;
	uint64_t process[2];
	struct known_export exports[EXPORTS];
	/* GPUs that another's kernels reach, a bit for each. */
	uint64_t reaches[CUDA_GPUS_MAX];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Caller holds @table.lock. */
static const uint64_t *process(void)
{
	if (!table.has_process) {
		base_random(table.process, sizeof(table.process));
		table.has_process = true;
	}
	return table.process;
}

/* Caller holds @table.lock. */
static void make(const struct mem_where *where, struct known_export *known)
{
	struct mem_export *export = &known->export;
	struct cuda_visit visit;
	struct cuda_ipc handle;
	struct cuda_gpu *gpu;

	*known = (struct known_export){.id = where->id};
	if (cuda_gpu_get(where->gpu, &gpu) || cuda_visit(gpu, &visit))
		return;
	known->is_possible = !cuda.ipc_export(&handle, (uintptr_t)where->base);
	cuda_visit_end(&visit);
	if (!known->is_possible)
		return;
	memcpy(export->process, process(), sizeof(export->process));
	export->id = where->id;
	export->base = (uintptr_t)where->base;
	export->bytes = where->bytes;
	memcpy(export->uuid, gpu->info.uuid, sizeof(export->uuid));
	memcpy(export->handle, handle.bytes, sizeof(export->handle));
}

int mem_export(const struct mem_where *where, struct mem_export *out)
{
	struct known_export *known = &table.exports[where->id % EXPORTS];
	bool is_possible;

	if (where->kind != MEM_DEVICE || !where->id || cuda_ipc_is_off())
		return WREATH_EUNSUP;
	pthread_mutex_lock(&table.lock);
	if (known->id != where->id)
		make(where, known);
	is_possible = known->is_possible;
	if (is_possible)
		*out = known->export;
	pthread_mutex_unlock(&table.lock);
	return is_possible ? 0 : WREATH_EUNSUP;
}

static int outside(const struct mem_export *from, uint64_t at, size_t bytes)
{
	return base_error(WREATH_EINVAL,
			  "a peer's %zu bytes at %#llx are not within the %llu "
			  "bytes at %#llx that it exports", bytes,
			  (unsigned long long)at,
			  (unsigned long long)from->bytes,
			  (unsigned long long)from->base);
}

/* ---- within a process ---- */

/* Caller holds @table.lock. */
static bool enable_peer(struct cuda_gpu *gpu, const struct cuda_gpu *peer)
{
	struct cuda_visit visit;
	int reaches = 0;
	int result;

	if (cuda.device_reaches(&reaches, gpu->device, peer->device) ||
	    !reaches || cuda_visit(gpu, &visit))
		return false;
	result = cuda.ctx_enable_peer(peer->ctx, 0);
	cuda_visit_end(&visit);
	return !result || result == CUDA_PEER_ACCESS_ALREADY_ENABLED;
}

static bool reaches(struct cuda_gpu *gpu, int number)
{
	struct cuda_gpu *peer;
	uint64_t bit = 1ull << number;
	bool yes;

	if (gpu->number == number)
		return true;
	if (cuda_gpu_get(number, &peer))
		return false;
	pthread_mutex_lock(&table.lock);
	yes = table.reaches[gpu->number] & bit;
	if (!yes && enable_peer(gpu, peer)) {
		table.reaches[gpu->number] |= bit;
		yes = true;
	}
	pthread_mutex_unlock(&table.lock);
	return yes;
}

/* The peer is a thread of this process, or says so: it is believed only what
 * CUDA says as well. */
static int import_own(struct mem_gpu *gpu, const struct mem_export *from,
		      uint64_t at, void **out)
{
	struct mem_where where;
	int err = mem_where((const void *)(uintptr_t)from->base, &where);

	if (err)
		return err;
	if (where.kind != MEM_DEVICE || where.id != from->id ||
	    (uintptr_t)where.base != from->base || where.bytes != from->bytes)
		return base_error(WREATH_EINVAL,
				  "%#llx, which a peer exports, is no "
				  "allocation of a GPU, or was freed",
				  (unsigned long long)from->base);
	if (!reaches(gpu->device, where.gpu))
		return base_error(WREATH_EUNSUP,
				  "GPU %d does not reach memory of GPU %d; see "
				  "nvidia-smi topo -p2p r",
				  gpu->device->number, where.gpu);
	*out = (void *)(uintptr_t)at;
	return 0;
}

/* ---- of another process ---- */

static bool is_same(const struct import *import, const struct mem_export *from)
{
	return import->base == from->base && import->id == from->id &&
	       import->process[0] == from->process[0] &&
	       import->process[1] == from->process[1];
}

/* The allocation was freed there, since another lies in its place. */
static bool is_gone(const struct import *import, const struct mem_export *from)
{
	return import->base == from->base && import->id != from->id &&
	       import->process[0] == from->process[0] &&
	       import->process[1] == from->process[1];
}

static void drop(struct mem_gpu *gpu, struct import *import)
{
	struct cuda_visit visit;

	if (import->here && !cuda_visit(gpu->device, &visit)) {
		cuda.ipc_close(import->here);
		cuda_visit_end(&visit);
	}
	*import = gpu->imports[--gpu->n_imports];
}

void gpu_imports_close(struct mem_gpu *gpu)
{
	while (gpu->n_imports)
		drop(gpu, &gpu->imports[gpu->n_imports - 1]);
}

/*
 * Drop what is gone, and where there is no room yet, what was unused for
 * longest.  Closing waits for the GPU, which may be waiting for the operation
 * that asks, as it does in one that is in the order of a stream; then all stays
 * until one comes that is not.
 */
static bool make_room(struct mem_gpu *gpu, const struct mem_export *from)
{
	struct import *oldest = NULL;
	size_t i;

	if (cuda_gate_shut()) {
		for (i = gpu->n_imports; i--;)
			if (is_gone(&gpu->imports[i], from) &&
			    gpu->imports[i].n_drains != gpu->n_drains)
				drop(gpu, &gpu->imports[i]);
		for (i = 0; i < gpu->n_imports; i++)
			if (gpu->imports[i].n_drains != gpu->n_drains &&
			    (!oldest ||
			     gpu->imports[i].n_drains < oldest->n_drains))
				oldest = &gpu->imports[i];
		if (gpu->n_imports >= MEM_IMPORTS_MAX && oldest)
			drop(gpu, oldest);
		cuda_gate_open();
	}
	return gpu->n_imports < MEM_IMPORTS_MOST;
}

static void open_import(struct mem_gpu *gpu, const struct mem_export *from,
			struct import *out)
{
	struct mem_where where;
	struct cuda_visit visit;
	struct cuda_ipc handle;
	uint64_t here = 0;
	int result;

	*out = (struct import){
		.process = {from->process[0], from->process[1]},
		.base = from->base,
		.id = from->id,
		.result = CUDA_CONTEXT_IS_DESTROYED,
	};
	memcpy(handle.bytes, from->handle, sizeof(handle.bytes));
	if (cuda_visit(gpu->device, &visit))
		return;
	result = cuda.ipc_open(&here, handle, CUDA_IPC_LAZY_PEERS);
	out->result = result ? result : CUDA_NOT_SUPPORTED;
	if (!result &&
	    !cuda_where((const void *)(uintptr_t)here, &where) &&
	    where.kind == MEM_DEVICE) {
		out->here = here;
		out->bytes = where.bytes -
			     (here - (uint64_t)(uintptr_t)where.base);
	} else if (!result) {
		cuda.ipc_close(here);
	}
	cuda_visit_end(&visit);
}

static int no_room(const struct mem_gpu *gpu)
{
	return base_error(WREATH_EUNSUP,
			  "GPU %d has %d allocations of others imported, and "
			  "none can be closed while streams wait for "
			  "operations", gpu->device->number,
			  (int)MEM_IMPORTS_MOST);
}

/* Whatever it was, what is staged needs none of it. */
static int not_opened(const struct mem_gpu *gpu, const struct import *import)
{
	cuda_error(import->result, "cuIpcOpenMemHandle", "GPU %d (%s)",
		   gpu->device->number, gpu->info.name);
	return WREATH_EUNSUP;
}

static int import_other(struct mem_gpu *gpu, const struct mem_export *from,
			uint64_t at, size_t bytes, void **out)
{
	struct import *import = gpu->imports;
	struct import *end = gpu->imports + gpu->n_imports;

	while (import < end && !is_same(import, from))
		import++;
	if (import == end) {
		if (!make_room(gpu, from))
			return no_room(gpu);
		import = &gpu->imports[gpu->n_imports++];
		open_import(gpu, from, import);
	}
	import->n_drains = gpu->n_drains;
	if (!import->here)
		return not_opened(gpu, import);
	if (at - from->base > import->bytes ||
	    bytes > import->bytes - (at - from->base))
		return outside(from, at, bytes);
	*out = (void *)(uintptr_t)(import->here + (at - from->base));
	return 0;
}

int mem_import(struct mem_gpu *gpu, const struct mem_export *from, uint64_t at,
	       size_t bytes, void **out)
{
	bool is_own;

	if (gpu->error)
		return base_error_again(gpu->error, gpu->text);
	if (cuda_ipc_is_off())
		return base_error(WREATH_EUNSUP,
				  "WREATH_GPU_IPC=off at this rank");
	if (from->bytes > UINT64_MAX - from->base || at < from->base ||
	    at - from->base > from->bytes ||
	    bytes > from->bytes - (at - from->base))
		return outside(from, at, bytes);
	pthread_mutex_lock(&table.lock);
	is_own = !memcmp(process(), from->process, sizeof(from->process));
	pthread_mutex_unlock(&table.lock);
	return is_own ? import_own(gpu, from, at, out)
		      : import_other(gpu, from, at, bytes, out);
}
