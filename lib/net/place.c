/* SPDX-License-Identifier: MIT */
/* Places: outputs that a peer may write, and inputs that it may read. */
#include <string.h>

#include "net/inner.h"

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

static int fill_place(struct net_conn *conn, const struct net_granting *what,
		      struct net_place *place)
{
	struct mem_region region;
	int err;

	/*
	 * Where slots are stored to directly, private memory is better served
	 * by them: a peer could reach it only through the kernel, which is no
	 * faster at any size.
	 */
	if ((what->kinds & NET_PLACE_OUTPUT) &&
	    mem_find(what->output, what->output_bytes, &region) &&
	    (region.fd >= 0 || !conn->lanes[0].map_slots)) {
		err = net_mr_key(conn->net, conn->port, &region,
				 &place->output_rkey);
		if (err)
			return err;
		place->output = (uintptr_t)what->output;
		place->output_bytes = what->output_bytes;
		place->kinds |= NET_PLACE_OUTPUT;
	}
	/* Only what the peer is sure to be able to map: shared memory. */
	if ((what->kinds & NET_PLACE_INPUT) && conn->lanes[0].map_slots &&
	    mem_find(what->input, what->input_bytes, &region) &&
	    region.fd >= 0) {
		err = net_mr_key(conn->net, conn->port, &region,
				 &place->input_rkey);
		if (err)
			return err;
		place->input = (uintptr_t)what->input;
		place->input_bytes = what->input_bytes;
		place->kinds |= NET_PLACE_INPUT;
	}
	return 0;
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

/* What is granted of @kinds; of others nothing changes. */
static int grant_kinds(struct net_conn *conn, uint32_t kinds,
		       const struct net_granting *what, uint32_t signature)
{
	struct net_grant grant = {.word = 0};
	int err = fill_place(conn, what, &grant.place);

	if (err)
		return err;
	conn->granted = (conn->granted & ~kinds) | grant.place.kinds;
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

static void map_output(struct net_conn *conn, const struct net_place *place)
{
	net_unmap(conn, conn->output_map);
	conn->output_map = NULL;
	if (place->kinds & NET_PLACE_OUTPUT)
		conn->output_map =
			map_place(conn, place->output_rkey, place->output,
				  place->output_bytes);
}

static void map_input(struct net_conn *conn, const struct net_place *place)
{
	net_unmap(conn, conn->input_map);
	conn->input_map = NULL;
	if (place->kinds & NET_PLACE_INPUT)
		conn->input_map =
			map_place(conn, place->input_rkey, place->input,
				  place->input_bytes);
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
	/* The same place as last time keeps its mapping: keys are unique. */
	if (memcmp(&place, &conn->place, sizeof(place))) {
		map_output(conn, &place);
		map_input(conn, &place);
		conn->place = place;
		conn->place_told = place.kinds;
	}
	return true;
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

/* Of the place that there was, what is not of this kind stays. */
static void take_output(struct net_conn *conn, const struct net_place *place)
{
	struct net_place *now = &conn->place;

	if ((now->kinds ^ place->kinds) & NET_PLACE_OUTPUT ||
	    now->output != place->output ||
	    now->output_bytes != place->output_bytes ||
	    now->output_rkey != place->output_rkey)
		map_output(conn, place);
	now->output = place->output;
	now->output_bytes = place->output_bytes;
	now->output_rkey = place->output_rkey;
	now->kinds = (now->kinds & ~(uint32_t)NET_PLACE_OUTPUT) |
		     (place->kinds & NET_PLACE_OUTPUT);
	conn->place_told = now->kinds | (place->kinds & NET_PLACE_GPU_OP);
}

static void take_input(struct net_conn *conn, const struct net_place *place)
{
	struct net_place *now = &conn->place;

	if ((now->kinds ^ place->kinds) & NET_PLACE_INPUT ||
	    now->input != place->input ||
	    now->input_bytes != place->input_bytes ||
	    now->input_rkey != place->input_rkey)
		map_input(conn, place);
	now->input = place->input;
	now->input_bytes = place->input_bytes;
	now->input_rkey = place->input_rkey;
	now->kinds = (now->kinds & ~(uint32_t)NET_PLACE_INPUT) |
		     (place->kinds & NET_PLACE_INPUT);
	conn->place_told = now->kinds | (place->kinds & NET_PLACE_GPU_OP);
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
	if (kind == NET_PLACE_OUTPUT)
		take_output(conn, place);
	else
		take_input(conn, place);
	return true;
}
