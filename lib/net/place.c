/* SPDX-License-Identifier: MIT */
/* Places: outputs that a peer may write, and inputs that it may read. */
#include <string.h>

#include "net/reach.h"

/*
 * Mixed into the word of a grant: a device without line order may land the
 * grant's words in any order, and a torn one must not be believed.
 */
static uint32_t place_check(const struct net_place *place)
{
	uint64_t mixed =
		place->output * 0x9e3779b97f4a7c15u ^ place->output_bytes;

	mixed = (mixed ^ mixed >> 29 ^ place->output_rkey) *
		0xbf58476d1ce4e5b9u;
	mixed = (mixed ^ mixed >> 30 ^ place->input_bytes) *
		0x9e3779b97f4a7c15u;
	mixed = (mixed ^ mixed >> 31 ^ place->input) * 0x94d049bb133111ebu;
	mixed = (mixed ^ mixed >> 30 ^ place->input_rkey) *
		0xbf58476d1ce4e5b9u;
	return (uint32_t)(mixed >> 32) ^ place->kinds;
}

static bool is_gpus(const struct mem_where *where)
{
	return where && where->kind == MEM_DEVICE;
}

/* Migrates as it likes, so that no device may be told where it is. */
static bool is_managed(const struct mem_where *where)
{
	return where && where->kind == MEM_MANAGED;
}

/*
 * Memory of a GPU.  Where slots are mapped a place is stored to, so that a key
 * is of no use: only kernels store there.
 */
static int fill_gpu(struct net_conn *conn, const struct net_granting *what,
		    struct net_place *place)
{
	struct mem_region region;
	int err;

	if (!net_maps(conn)) {
		if (!mem_gpu_region(what->output, what->output_bytes, &region))
			return 0;
		err = net_mr_key(conn->net, conn->port, &region,
				 &place->output_rkey);
		if (!err)
			place->kinds |= NET_PLACE_OUTPUT;
		return err == WREATH_EUNSUP ? 0 : err;
	}
	if (what->is_mutual &&
	    net_ipc_grant(conn, what->output_where, what->output,
			  what->output_bytes, &place->output_rkey))
		place->kinds |= NET_PLACE_OUTPUT | NET_PLACE_OUTPUT_GPU;
	return 0;
}

static int fill_output(struct net_conn *conn, const struct net_granting *what,
		       struct net_place *place)
{
	struct mem_region region;
	int err = 0;

	/*
	 * Where slots are stored to directly, private memory is better served
	 * by them: a peer could reach it only through the kernel, which is no
	 * faster at any size.
	 */
	if (is_gpus(what->output_where)) {
		err = fill_gpu(conn, what, place);
	} else if (!is_managed(what->output_where) &&
		   mem_find(what->output, what->output_bytes, &region) &&
		   region.gpu < 0 &&
		   (region.fd >= 0 || !conn->lanes[0].map_slots)) {
		err = net_mr_key(conn->net, conn->port, &region,
				 &place->output_rkey);
		if (!err)
			place->kinds |= NET_PLACE_OUTPUT;
	}
	if (place->kinds & NET_PLACE_OUTPUT) {
		place->output = (uintptr_t)what->output;
		place->output_bytes = what->output_bytes;
	}
	return err;
}

/* Only what the peer is sure to be able to map: shared memory, or a GPU's. */
static int fill_input(struct net_conn *conn, const struct net_granting *what,
		      struct net_place *place)
{
	struct mem_region region;
	int err = 0;

	if (!conn->lanes[0].map_slots)
		return 0;
	if (is_gpus(what->input_where)) {
		if (what->is_mutual &&
		    net_ipc_grant(conn, what->input_where, what->input,
				  what->input_bytes, &place->input_rkey))
			place->kinds |= NET_PLACE_INPUT | NET_PLACE_INPUT_GPU;
	} else if (!is_managed(what->input_where) &&
		   mem_find(what->input, what->input_bytes, &region) &&
		   region.fd >= 0) {
		err = net_mr_key(conn->net, conn->port, &region,
				 &place->input_rkey);
		if (!err)
			place->kinds |= NET_PLACE_INPUT;
	}
	if (place->kinds & NET_PLACE_INPUT) {
		place->input = (uintptr_t)what->input;
		place->input_bytes = what->input_bytes;
	}
	return err;
}

static int fill_place(struct net_conn *conn, const struct net_granting *what,
		      struct net_place *place)
{
	int err = 0;

	if (what->kinds & NET_PLACE_OUTPUT)
		err = fill_output(conn, what, place);
	if (!err && (what->kinds & NET_PLACE_INPUT))
		err = fill_input(conn, what, place);
	return err;
}

static int post_grant(struct net_conn *conn, const struct net_grant *grant,
		      uint32_t number)
{
	struct ibv_sge sge = {.addr = (uintptr_t)grant,
			      .length = sizeof(*grant)};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE,
	};
	uint32_t at = (number - 1) % NET_PLACES;

	wr.wr.rdma.remote_addr = conn->far_places + at * sizeof(*grant);
	wr.wr.rdma.rkey = conn->rkey;
	return net_post(conn, &wr);
}

/* A kind, with what says that it is in memory of a GPU. */
static uint32_t with_gpu(uint32_t kinds)
{
	return kinds | kinds << 2;
}
_Static_assert(NET_PLACE_OUTPUT_GPU == NET_PLACE_OUTPUT << 2 &&
		       NET_PLACE_INPUT_GPU == NET_PLACE_INPUT << 2,
	       "a class is two bits above its kind");

/* What is granted of @kinds; of others nothing changes. */
static int grant_kinds(struct net_conn *conn, uint32_t kinds,
		       const struct net_granting *what, uint32_t signature)
{
	struct net_grant grant = {.word = 0};
	int err = fill_place(conn, what, &grant.place);

	if (err)
		return err;
	conn->granted = (conn->granted & ~with_gpu(kinds)) | grant.place.kinds;
	if (conn->net->gpu)
		grant.place.kinds |= NET_PLACE_GPU_OP;
	grant.word = net_word(++conn->n_places_sent,
			      signature ^ place_check(&grant.place));
	if (sizeof(grant) > conn->max_inline)
		return base_error(WREATH_EUNSUP,
				  "%s takes %u bytes inline; wreath needs %zu",
				  conn->port->text, conn->max_inline,
				  sizeof(grant));
	if (conn->mend)
		conn->mend->grants[(conn->n_places_sent - 1) % NET_PLACES] =
			grant;
	return post_grant(conn, &grant, conn->n_places_sent);
}

int net_place_grant(struct net_conn *conn, const struct net_granting *what,
		    uint32_t signature)
{
	return grant_kinds(conn, NET_PLACE_OUTPUT | NET_PLACE_INPUT, what,
			   signature);
}

/* Those of a kind are known by their signature, what they grant or not. */
static uint32_t of_kind(uint32_t signature, enum net_place_kind kind)
{
	return signature ^ (uint32_t)kind * 0x9e3779b9u;
}

int net_place_grant_one(struct net_conn *conn, enum net_place_kind kind,
			const struct net_granting *what, uint32_t signature)
{
	struct net_granting one = *what;

	one.kinds &= kind;
	return grant_kinds(conn, kind, &one, of_kind(signature, kind));
}

int net_places_grant_again(struct net_conn *conn)
{
	uint32_t n = conn->n_places_sent;
	uint32_t i;
	int err = 0;

	/* Those that the peer has taken do no harm: they are the same again. */
	for (i = n > NET_PLACES ? n - NET_PLACES : 0; i < n && !err; i++)
		err = post_grant(conn, &conn->mend->grants[i % NET_PLACES],
				 i + 1);
	return err;
}

static void *map_place(struct net_conn *conn, uint32_t rkey, uint64_t address,
		       uint64_t bytes)
{
	/* As with the slots: where completions are polled, all is WRITEs. */
	if (!net_maps(conn))
		return NULL;
	return conn->port->device->verbs->map(conn->qp, rkey, address, bytes);
}

/* What was imported is nothing that is given back here. */
void net_places_unmap(struct net_conn *conn)
{
	if (!(conn->place_told & NET_PLACE_OUTPUT_GPU))
		net_unmap(conn, conn->output_map);
	if (!(conn->place_told & NET_PLACE_INPUT_GPU))
		net_unmap(conn, conn->input_map);
	conn->output_map = NULL;
	conn->input_map = NULL;
}

struct part {
	uint64_t address, bytes;
	uint32_t rkey;
};

static struct part part_of(const struct net_place *place,
			   enum net_place_kind kind)
{
	if (kind == NET_PLACE_OUTPUT)
		return (struct part){place->output, place->output_bytes,
				     place->output_rkey};
	return (struct part){place->input, place->input_bytes,
			     place->input_rkey};
}

static void part_set(struct net_conn *conn, enum net_place_kind kind,
		     const struct part *part, void *map)
{
	struct net_place *place = &conn->place;

	if (kind == NET_PLACE_OUTPUT) {
		place->output = part->address;
		place->output_bytes = part->bytes;
		place->output_rkey = part->rkey;
		conn->output_map = map;
	} else {
		place->input = part->address;
		place->input_bytes = part->bytes;
		place->input_rkey = part->rkey;
		conn->input_map = map;
	}
}

/*
 * Take one kind of @place over, mapped: what is in memory of a GPU is of use
 * only to who has one in the operation too.  False: the net is broken.
 */
static bool take_kind(struct net_conn *conn, enum net_place_kind kind,
		      const struct net_place *place)
{
	const uint32_t both = with_gpu(kind);
	const uint32_t told = place->kinds & both;
	const uint32_t was = conn->place_told & both;
	const struct part to = part_of(place, kind);
	const struct part from = part_of(&conn->place, kind);
	const bool by_gpu = told & ~(uint32_t)kind;
	uint32_t use = told;
	void *map = NULL;

	conn->place_told = (conn->place_told & ~(uint32_t)NET_PLACE_GPU_OP) |
			   (place->kinds & NET_PLACE_GPU_OP);
	/* The same as last time keeps its mapping: keys are unique.  What was
	 * imported may have gone since, for the room. */
	if (told == was && !by_gpu && to.address == from.address &&
	    to.bytes == from.bytes && to.rkey == from.rkey)
		return true;
	if (!(was & ~(uint32_t)kind))
		net_unmap(conn, kind == NET_PLACE_OUTPUT ? conn->output_map
							 : conn->input_map);
	if (by_gpu && !conn->net->gpu)
		use = 0;
	else if (by_gpu)
		map = net_ipc_map(conn, to.rkey, to.address, to.bytes);
	else if (told)
		map = map_place(conn, to.rkey, to.address, to.bytes);
	part_set(conn, kind, &to, map);
	conn->place.kinds = (conn->place.kinds & ~both) | use;
	conn->place_told = (conn->place_told & ~both) | told;
	return map || !by_gpu || !use;
}

/* Word by word: the grant may be landing, and place_check() decides. */
static struct net_place load_place(const struct net_grant *grant)
{
	const _Atomic uint64_t *from = (const void *)&grant->place;
	uint64_t words[sizeof(struct net_place) / 8] = {0};
	struct net_place place;
	size_t i;

	for (i = 0; i < base_countof(words); i++)
		words[i] = atomic_load_explicit(&from[i],
						memory_order_relaxed);
	memcpy(&place, words, sizeof(place));
	return place;
}

/* The next grant, when it has come and is of the operation. */
static bool look_at_place(struct net_conn *conn, uint32_t signature,
			  struct net_place *place)
{
	const struct net_grant *grant =
		(const void *)(conn->places + conn->n_places_taken %
						      NET_PLACES *
						      sizeof(*grant));
	/* Pairs with the peer's WRITE of the grant, whose word comes last
	 * where the device keeps line order; place_check() tells elsewhere. */
	uint64_t word = atomic_load_explicit(
		(const _Atomic uint64_t *)&grant->word, memory_order_acquire);

	/* Mostly it has not come: its number tells. */
	if ((uint32_t)word != conn->n_places_taken + 1)
		return false;
	*place = load_place(grant);
	return word == net_word(conn->n_places_taken + 1,
				signature ^ place_check(place));
}

bool net_place_take(struct net_conn *conn, uint32_t signature)
{
	struct net_place place;

	if (!look_at_place(conn, signature, &place))
		return false;
	conn->n_places_taken++;
	return take_kind(conn, NET_PLACE_OUTPUT, &place) &&
	       take_kind(conn, NET_PLACE_INPUT, &place);
}

static struct net_places_ahead *ahead_of(struct net_conn *conn,
					 enum net_place_kind kind)
{
	return kind == NET_PLACE_OUTPUT ? &conn->outputs_ahead
					: &conn->inputs_ahead;
}

/* Put aside what has come for messages, by its kind; is it that? */
static bool put_ahead(struct net_conn *conn, enum net_place_kind kind,
		      uint32_t signature)
{
	struct net_places_ahead *ahead = ahead_of(conn, kind);
	struct net_place place;

	if (ahead->n_put - ahead->n_taken == NET_PLACES_AHEAD ||
	    !look_at_place(conn, of_kind(signature, kind), &place))
		return false;
	conn->n_places_taken++;
	ahead->places[ahead->n_put++ % NET_PLACES_AHEAD] = place;
	return true;
}

bool net_place_take_one(struct net_conn *conn, enum net_place_kind kind,
			uint32_t signature)
{
	struct net_places_ahead *ahead = ahead_of(conn, kind);
	const struct net_place *place;

	while (ahead->n_put == ahead->n_taken)
		if (!put_ahead(conn, NET_PLACE_OUTPUT, signature) &&
		    !put_ahead(conn, NET_PLACE_INPUT, signature))
			return false;
	place = &ahead->places[ahead->n_taken++ % NET_PLACES_AHEAD];
	return take_kind(conn, kind, place);
}
