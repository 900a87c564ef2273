/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "round.h"
#include "sock.h"

/*
 * The connection carried one small frame at most before this one, so its
 * buffer takes it whole; what a dead peer misses, it does not need.
 */
static void tell(int fd, enum boot_frame_type type, int error,
		 const void *payload, size_t bytes)
{
	unsigned char out[BOOT_HEAD_BYTES + BOOT_TEXT_BYTES];
	struct boot_head head = {
		.bytes = (uint32_t)bytes,
		.type = type,
		.value = (uint32_t)-error,
	};

	wreath_assert(bytes <= BOOT_TEXT_BYTES);
	boot_head_encode(&head, out);
	if (bytes)
		memcpy(out + BOOT_HEAD_BYTES, payload, bytes);
	boot_sock_send(fd, out, BOOT_HEAD_BYTES + bytes);
}

static void refuse(int fd, int error, const char *text)
{
	tell(fd, BOOT_REFUSED, error, text, strlen(text) + 1);
	boot_sock_close(&fd);
}

static void clear(struct boot_round *round)
{
	int i;

	for (i = 0; i < round->n_ranks; i++)
		boot_sock_close(&round->members[i].fd);
	base_free(round->members);
	round->members = NULL;
	round->n_ranks = 0;
	round->n_here = 0;
}

static void forget_failure(struct boot_round *round)
{
	base_free(round->told);
	round->told = NULL;
	round->n_told = 0;
	round->error = 0;
}

void boot_round_release(struct boot_round *round)
{
	clear(round);
	forget_failure(round);
}

/*
 * The root may live in the process of a rank, and end with it: that rank is
 * told when all others have been.
 */
static bool is_here(const struct boot_join_wire *join)
{
	return join->pid == (uint32_t)getpid();
}

static void refuse_all(struct boot_round *round, bool here)
{
	int i;

	for (i = 0; i < round->n_ranks; i++) {
		struct boot_member *member = &round->members[i];

		if (member->fd < 0 || is_here(&member->join) != here)
			continue;
		refuse(member->fd, round->error, round->text);
		member->fd = -1;
		if (round->told)
			round->told[i] = true;
	}
}

/*
 * round->text is set: everyone here gets it, and of @n_ranks whoever is still
 * to come.
 */
static enum boot_verdict fail(struct boot_round *round, int n_ranks, int error)
{
	base_log(BASE_LOG_INFO, "root: %s", round->text);
	round->error = error;
	round->n_told = n_ranks;
	/* Without memory latecomers find no failure, and wait in vain. */
	round->told = base_alloc((size_t)n_ranks, sizeof(bool));
	refuse_all(round, false);
	refuse_all(round, true);
	if (!round->told)
		forget_failure(round);
	clear(round);
	return BOOT_BROKEN;
}

static enum boot_verdict fail_with(struct boot_round *round, int fd,
				   const struct boot_join_wire *join, int error)
{
	int n_ranks = round->n_ranks;

	if (!n_ranks && join->n_ranks <= BOOT_MAX_RANKS)
		n_ranks = (int)join->n_ranks;
	if (!is_here(join))
		refuse(fd, error, round->text);
	fail(round, n_ranks, error);
	if (is_here(join))
		refuse(fd, error, round->text);
	if (round->told && join->rank < (uint32_t)round->n_told)
		round->told[join->rank] = true;
	return BOOT_BROKEN;
}

static bool disagrees(struct boot_round *round,
		      const struct boot_join_wire *join, int *error)
{
	const struct boot_join_wire *first = &round->members[round->first].join;

	*error = WREATH_EINVAL;
	if (join->n_ranks != first->n_ranks) {
		snprintf(round->text, sizeof(round->text),
			 "the ranks disagree about their number: rank %u (host "
			 "%s, pid %u) says %u, rank %u (host %s, pid %u) says "
			 "%u",
			 first->rank, first->host, first->pid, first->n_ranks,
			 join->rank, join->host, join->pid, join->n_ranks);
		return true;
	}
	if (round->members[join->rank].fd >= 0) {
		const struct boot_join_wire *other =
			&round->members[join->rank].join;

		snprintf(round->text, sizeof(round->text),
			 "rank %u was claimed twice: by host %s pid %u and by "
			 "host %s pid %u",
			 join->rank, other->host, other->pid, join->host,
			 join->pid);
		return true;
	}
	*error = WREATH_EMISMATCH;
	if (strcmp(join->config, first->config)) {
		snprintf(round->text, sizeof(round->text),
			 "the ranks' settings differ: rank %u (host %s, pid "
			 "%u) has '%s', rank %u (host %s, pid %u) has '%s'",
			 first->rank, first->host, first->pid, first->config,
			 join->rank, join->host, join->pid, join->config);
		return true;
	}
	return false;
}

static void name_of(const struct boot_round *round, int rank,
		    struct boot_name_wire *out)
{
	const struct boot_join_wire *join = &round->members[rank].join;

	out->pid = htole32(join->pid);
	memcpy(out->host, join->host, sizeof(out->host));
}

static void place_one(const struct boot_round *round, int rank,
		      struct boot_place_wire *place)
{
	struct boot_shape shape;
	int c;

	boot_shape_of(rank, round->n_ranks, &shape);
	if (shape.parent >= 0) {
		place->parent_at =
			round->members[shape.parent].join.listens_at;
		name_of(round, shape.parent, &place->parent);
	}
	for (c = 0; c < shape.n_children; c++)
		name_of(round, shape.child[c].first, &place->children[c]);
	tell(round->members[rank].fd, BOOT_PLACED, 0, place, sizeof(*place));
}

/* A member has nothing to say: what can be read is its end, or a breach. */
static int first_gone(const struct boot_round *round)
{
	char byte;
	int i;

	for (i = 0; i < round->n_ranks; i++)
		if (boot_sock_recv(round->members[i].fd, &byte, 1))
			return i;
	return -1;
}

static enum boot_verdict place_all(struct boot_round *round)
{
	struct boot_place_wire place;
	int gone = first_gone(round);
	int here, i;

	/* In a tree nobody would hear of it at once. */
	if (gone >= 0)
		return boot_round_lost(round, gone);
	memset(&place, 0, sizeof(place));
	base_random(place.token, sizeof(place.token));
	for (here = 0; here < 2; here++)
		for (i = 0; i < round->n_ranks; i++)
			if (is_here(&round->members[i].join) == here)
				place_one(round, i, &place);
	clear(round);
	return BOOT_COMPLETE;
}

static bool begin(struct boot_round *round, const struct boot_join_wire *join)
{
	uint32_t i;

	round->members = base_alloc(join->n_ranks, sizeof(*round->members));
	if (!round->members)
		return false;
	for (i = 0; i < join->n_ranks; i++)
		round->members[i].fd = -1;
	round->n_ranks = (int)join->n_ranks;
	round->first = (int)join->rank;
	round->members[join->rank].join = *join;
	round->deadline_ns = UINT64_MAX;
	return true;
}

/* Things that make a rank impossible in any round, not only in this one. */
static int check_alone(const struct boot_join_wire *join, char *text,
		       size_t bytes)
{
	const uint32_t ours = WREATH_VERSION;

	if (join->version != ours) {
		snprintf(text, bytes,
			 "rank %u (host %s, pid %u) runs wreath %u.%u.%u, the "
			 "root runs %u.%u.%u: use one version on every rank",
			 join->rank, join->host, join->pid,
			 join->version / 10000, join->version / 100 % 100,
			 join->version % 100, ours / 10000, ours / 100 % 100,
			 ours % 100);
		return WREATH_EMISMATCH;
	}
	if (join->n_ranks < 1 || join->n_ranks > BOOT_MAX_RANKS ||
	    join->rank >= join->n_ranks) {
		snprintf(text, bytes,
			 "rank %u of %u ranks (host %s, pid %u) is out of "
			 "range: there may be 1 to %d ranks, from 0",
			 join->rank, join->n_ranks, join->host, join->pid,
			 BOOT_MAX_RANKS);
		return WREATH_EINVAL;
	}
	return 0;
}

enum boot_verdict boot_round_admit(struct boot_round *round,
				   const struct boot_join_wire *join, int fd)
{
	struct boot_member *member;
	uint64_t deadline_ns;
	int error;

	if (round->error && join->rank < (uint32_t)round->n_told &&
	    !round->told[join->rank]) {
		round->told[join->rank] = true;
		refuse(fd, round->error, round->text);
		return BOOT_WAITING;
	}
	forget_failure(round);
	error = check_alone(join, round->text, sizeof(round->text));
	if (error)
		return fail_with(round, fd, join, error);
	if (!round->n_ranks) {
		if (!begin(round, join)) {
			refuse(fd, WREATH_ENOMEM,
			       "the root has no memory for "
			       "this communicator");
			return BOOT_BROKEN;
		}
	} else if (disagrees(round, join, &error)) {
		return fail_with(round, fd, join, error);
	}
	member = &round->members[join->rank];
	member->fd = fd;
	member->join = *join;
	round->n_here++;
	tell(fd, BOOT_ADMITTED, 0, NULL, 0);
	deadline_ns = base_now_ns() + join->timeout_ms * UINT64_C(1000000);
	if (deadline_ns < round->deadline_ns) {
		round->deadline_ns = deadline_ns;
		round->timeout_ms = join->timeout_ms;
	}
	return round->n_here == round->n_ranks ? place_all(round)
					       : BOOT_WAITING;
}

enum boot_verdict boot_round_lost(struct boot_round *round, int rank)
{
	const struct boot_join_wire *join;

	if (rank >= round->n_ranks || round->members[rank].fd < 0)
		return BOOT_WAITING;
	join = &round->members[rank].join;
	snprintf(round->text, sizeof(round->text),
		 "rank %d (host %s, pid %u) died or gave up while %d of %d "
		 "ranks had come",
		 rank, join->host, join->pid, round->n_here, round->n_ranks);
	return fail(round, round->n_ranks, WREATH_EPEER);
}

void boot_round_expire(struct boot_round *round)
{
	char missing[512] = "";
	char within[24];
	size_t at = 0;
	int i, end;

	for (i = 0; i < round->n_ranks; i = end + 1) {
		end = i;
		if (round->members[i].fd >= 0)
			continue;
		while (end + 1 < round->n_ranks &&
		       round->members[end + 1].fd < 0)
			end++;
		if (at > sizeof(missing) - 40) {
			snprintf(missing + at, sizeof(missing) - at,
				 ", and others");
			break;
		}
		at += (size_t)snprintf(missing + at, sizeof(missing) - at,
				       end > i ? "%s%d-%d" : "%s%d",
				       at ? ", " : "", i, end);
	}
	boot_text_ms(round->timeout_ms, within);
	snprintf(round->text, sizeof(round->text),
		 "%d of %d ranks came within %s; missing: %s; are they "
		 "running, and do they have this id?",
		 round->n_here, round->n_ranks, within, missing);
	fail(round, round->n_ranks, WREATH_ETIMEOUT);
}
