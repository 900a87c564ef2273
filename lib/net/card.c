/* SPDX-License-Identifier: MIT */
/*
 * The card that one end of a connection shows the other in librdmacm's private
 * data.  Anybody may send one, so that nothing in it is believed before its
 * proof has been checked: a MAC by the token that this rank gave the peer
 * through boot, for this one connection.
 *
 * In network order; all of its bytes are covered by the proof:
 *	 0 magic[3], version	 4 kind, channel, rank[2]
 *	 8 slots, zero[3]	12 bytes of a slot
 *	16 mailbox		24 board
 *	32 key of the mailbox	36 key of the board
 *	40 proof[16]
 */
#include <endian.h>
#include <sodium.h>
#include <string.h>

#include "net/cm.h"

#define CARD_PROOF 40 /* where it begins, and what it covers */
#define CARD_PROOF_BYTES (NET_CARD_BYTES - CARD_PROOF)

_Static_assert(CARD_PROOF_BYTES >= crypto_generichash_BYTES_MIN,
	       "libsodium makes it so short");
_Static_assert(NET_TOKEN_BYTES >= crypto_generichash_KEYBYTES_MIN,
	       "libsodium takes it as a key");
_Static_assert(NET_CARD_BYTES <= VERBS_CM_REQUEST_MAX, "a request carries it");

static const unsigned char magic[4] = {'w', 'r', 'c', 1};

static void put16(unsigned char *at, uint16_t value)
{
	value = htobe16(value);
	memcpy(at, &value, sizeof(value));
}

static void put32(unsigned char *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof(value));
}

static void put64(unsigned char *at, uint64_t value)
{
	value = htobe64(value);
	memcpy(at, &value, sizeof(value));
}

static uint16_t get16(const unsigned char *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return be16toh(value);
}

static uint32_t get32(const unsigned char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return be32toh(value);
}

static uint64_t get64(const unsigned char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return be64toh(value);
}

static void prove(const unsigned char *bytes,
		  const unsigned char token[NET_TOKEN_BYTES],
		  unsigned char out[CARD_PROOF_BYTES])
{
	crypto_generichash(out, CARD_PROOF_BYTES, bytes, CARD_PROOF, token,
			   NET_TOKEN_BYTES);
}

void net_card_write(const struct net_card *card,
		    const unsigned char token[NET_TOKEN_BYTES],
		    unsigned char bytes[NET_CARD_BYTES])
{
	memset(bytes, 0, NET_CARD_BYTES);
	memcpy(bytes, magic, sizeof(magic));
	bytes[4] = (unsigned char)card->kind;
	bytes[5] = card->channel;
	put16(bytes + 6, card->rank);
	bytes[8] = card->n_slots;
	put32(bytes + 12, card->slot_bytes);
	put64(bytes + 16, card->address);
	put64(bytes + 24, card->board);
	put32(bytes + 32, card->rkey);
	put32(bytes + 36, card->board_rkey);
	prove(bytes, token, bytes + CARD_PROOF);
}

bool net_card_read(const void *data, size_t n, struct net_card *card)
{
	static const unsigned char zero[3];
	const unsigned char *bytes = data;

	if (n < NET_CARD_BYTES || memcmp(bytes, magic, sizeof(magic)) ||
	    memcmp(bytes + 9, zero, sizeof(zero)))
		return false;
	if (bytes[4] != NET_CARD_REQUEST && bytes[4] != NET_CARD_REPLY)
		return false;
	if (bytes[5] >= NET_CHANNELS_MAX || bytes[8] > NET_SLOTS_MAX)
		return false;
	card->kind = bytes[4];
	card->channel = bytes[5];
	card->rank = get16(bytes + 6);
	card->n_slots = bytes[8];
	card->slot_bytes = get32(bytes + 12);
	card->address = get64(bytes + 16);
	card->board = get64(bytes + 24);
	card->rkey = get32(bytes + 32);
	card->board_rkey = get32(bytes + 36);
	return true;
}

bool net_card_is_genuine(const void *data, size_t n,
			 const unsigned char token[NET_TOKEN_BYTES])
{
	unsigned char want[CARD_PROOF_BYTES];

	if (n < NET_CARD_BYTES)
		return false;
	prove(data, token, want);
	return !sodium_memcmp(want, (const unsigned char *)data + CARD_PROOF,
			      sizeof(want));
}
