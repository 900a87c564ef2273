/* SPDX-License-Identifier: MIT */
/*
 * The handshake: each end proves by HMAC-SHA256 that it holds the id's secret,
 * over both ends' nonces, the purpose and its own role, so that nothing that
 * was recorded or reflected is a proof.  The secret never leaves the process.
 * Lengths are fixed: there is nothing in it for a stranger to choose.
 *
 *	client: magic, purpose, rank, nonce, token
 *	server: magic, nonce, proof
 *	client: proof
 *
 * What follows on the connection is not protected: who can alter packets
 * between hosts can alter frames.
 *
 * A struct boot_auth is one connection's state, without pointers to free; one
 * thread at a time.  It never blocks, and reads no byte beyond the handshake.
 */
#ifndef BOOT_AUTH_H
#define BOOT_AUTH_H

#include "wire.h"

#define BOOT_NONCE_BYTES 32
#define BOOT_PROOF_BYTES 32

/* A stranger may hold a connection for so long. */
#define BOOT_AUTH_MS 5000

enum boot_purpose {
	BOOT_TO_ROOT = 1,
	BOOT_TO_PARENT = 2,
	BOOT_TO_CHAIR = 3,
};

struct boot_hello_wire {
	unsigned char magic[8];
	uint32_t purpose;
	uint32_t rank;
	unsigned char nonce[BOOT_NONCE_BYTES];
	unsigned char token[BOOT_TOKEN_BYTES]; /* names the round; no secret */
};
_Static_assert(sizeof(struct boot_hello_wire) == 64, "goes over the wire");

struct boot_challenge_wire {
	unsigned char magic[8];
	unsigned char nonce[BOOT_NONCE_BYTES];
	unsigned char proof[BOOT_PROOF_BYTES];
};
_Static_assert(sizeof(struct boot_challenge_wire) == 72, "goes over the wire");

enum boot_auth_state {
	BOOT_AUTH_SENDING, /* then, at its end, @next */
	BOOT_AUTH_READING,
	BOOT_AUTH_DONE,
	BOOT_AUTH_STRANGER,  /* the peer is none of ours, or went away */
	BOOT_AUTH_BAD_PROOF, /* it speaks our language with another secret */
};

struct boot_auth {
	int fd;
	bool is_server;
	enum boot_auth_state state;
	enum boot_auth_state next;
	uint64_t deadline_ns;
	uint32_t purpose;
	uint32_t rank; /* the client's claim; the server's to judge */
	struct boot_hello_wire hello;
	struct boot_challenge_wire challenge;
	unsigned char proof[BOOT_PROOF_BYTES];
	unsigned char *at; /* what is being moved, within this struct */
	size_t left;
};

/* @fd stays the caller's. */
void boot_auth_client(struct boot_auth *auth, int fd, enum boot_purpose purpose,
		      int rank, const unsigned char token[BOOT_TOKEN_BYTES]);
void boot_auth_server(struct boot_auth *auth, int fd, enum boot_purpose purpose,
		      const unsigned char token[BOOT_TOKEN_BYTES]);

/* Go as far as the socket lets us; the deadline is the caller's to watch. */
enum boot_auth_state boot_auth_step(struct boot_auth *auth,
				    const unsigned char *secret);

/* POLLIN or POLLOUT: what boot_auth_step() waits for. */
short boot_auth_events(const struct boot_auth *auth);

/* True once the peer has sent a whole, well-formed hello. */
bool boot_auth_is_promising(const struct boot_auth *auth);

#endif
