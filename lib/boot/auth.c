/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <endian.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>

#include "auth.h"
#include "sock.h"

_Static_assert(crypto_auth_hmacsha256_BYTES == BOOT_PROOF_BYTES, "one MAC");
_Static_assert(crypto_auth_hmacsha256_KEYBYTES == BOOT_SECRET_BYTES,
	       "the secret is the key");

/* The last byte is the version of the handshake. */
static const unsigned char magic[8] = {'w', 'r', 'e', 'a', 't', 'h', 'b', 1};

/* The role is part of what is signed: one end's proof is none of the other. */
static const char server_role[16] = "wreath server";
static const char client_role[16] = "wreath client";

static void prove(const struct boot_auth *auth, const unsigned char *secret,
		  bool by_server, unsigned char out[BOOT_PROOF_BYTES])
{
	crypto_auth_hmacsha256_state state;
	size_t challenge_bytes =
		by_server ? offsetof(struct boot_challenge_wire, proof)
			  : sizeof(auth->challenge);

	crypto_auth_hmacsha256_init(&state, secret, BOOT_SECRET_BYTES);
	crypto_auth_hmacsha256_update(
		&state,
		(const unsigned char *)(by_server ? server_role : client_role),
		sizeof(server_role));
	crypto_auth_hmacsha256_update(&state,
				      (const unsigned char *)&auth->hello,
				      sizeof(auth->hello));
	crypto_auth_hmacsha256_update(&state,
				      (const unsigned char *)&auth->challenge,
				      challenge_bytes);
	crypto_auth_hmacsha256_final(&state, out);
	sodium_memzero(&state, sizeof(state));
}

static bool proof_is_right(const struct boot_auth *auth,
			   const unsigned char *secret,
			   const unsigned char *proof)
{
	unsigned char want[BOOT_PROOF_BYTES];

	prove(auth, secret, !auth->is_server, want);
	return !sodium_memcmp(want, proof, sizeof(want));
}

static void move(struct boot_auth *auth, enum boot_auth_state state, void *at,
		 size_t bytes, enum boot_auth_state next)
{
	auth->state = state;
	auth->at = at;
	auth->left = bytes;
	auth->next = next;
}

static void start(struct boot_auth *auth, int fd, enum boot_purpose purpose)
{
	memset(auth, 0, sizeof(*auth));
	auth->fd = fd;
	auth->purpose = purpose;
	auth->deadline_ns = base_now_ns() + BOOT_AUTH_MS * UINT64_C(1000000);
}

void boot_auth_client(struct boot_auth *auth, int fd, enum boot_purpose purpose,
		      int rank, const unsigned char token[BOOT_TOKEN_BYTES])
{
	start(auth, fd, purpose);
	memcpy(auth->hello.magic, magic, sizeof(magic));
	auth->hello.purpose = htole32((uint32_t)purpose);
	auth->hello.rank = htole32((uint32_t)rank);
	base_random(auth->hello.nonce, sizeof(auth->hello.nonce));
	memcpy(auth->hello.token, token, BOOT_TOKEN_BYTES);
	move(auth, BOOT_AUTH_SENDING, &auth->hello, sizeof(auth->hello),
	     BOOT_AUTH_READING);
}

void boot_auth_server(struct boot_auth *auth, int fd, enum boot_purpose purpose,
		      const unsigned char token[BOOT_TOKEN_BYTES])
{
	start(auth, fd, purpose);
	auth->is_server = true;
	/* The token that the hello must have waits in the proof's place. */
	memcpy(auth->proof, token, BOOT_TOKEN_BYTES);
	move(auth, BOOT_AUTH_READING, &auth->hello, sizeof(auth->hello),
	     BOOT_AUTH_SENDING);
}

static void server_read(struct boot_auth *auth, const unsigned char *secret)
{
	if (auth->at == auth->proof + sizeof(auth->proof)) {
		auth->state = proof_is_right(auth, secret, auth->proof)
				      ? BOOT_AUTH_DONE
				      : BOOT_AUTH_BAD_PROOF;
		return;
	}
	if (memcmp(auth->hello.magic, magic, sizeof(magic)) ||
	    le32toh(auth->hello.purpose) != auth->purpose ||
	    memcmp(auth->hello.token, auth->proof, BOOT_TOKEN_BYTES)) {
		auth->state = BOOT_AUTH_STRANGER;
		return;
	}
	auth->rank = le32toh(auth->hello.rank);
	memcpy(auth->challenge.magic, magic, sizeof(magic));
	base_random(auth->challenge.nonce, sizeof(auth->challenge.nonce));
	prove(auth, secret, true, auth->challenge.proof);
	move(auth, BOOT_AUTH_SENDING, &auth->challenge, sizeof(auth->challenge),
	     BOOT_AUTH_READING);
}

static void client_read(struct boot_auth *auth, const unsigned char *secret)
{
	if (memcmp(auth->challenge.magic, magic, sizeof(magic))) {
		auth->state = BOOT_AUTH_STRANGER;
		return;
	}
	if (!proof_is_right(auth, secret, auth->challenge.proof)) {
		auth->state = BOOT_AUTH_BAD_PROOF;
		return;
	}
	prove(auth, secret, false, auth->proof);
	move(auth, BOOT_AUTH_SENDING, auth->proof, sizeof(auth->proof),
	     BOOT_AUTH_DONE);
}

static void sent(struct boot_auth *auth)
{
	if (auth->next == BOOT_AUTH_DONE)
		auth->state = BOOT_AUTH_DONE;
	else if (auth->is_server)
		move(auth, BOOT_AUTH_READING, auth->proof, sizeof(auth->proof),
		     BOOT_AUTH_DONE);
	else
		move(auth, BOOT_AUTH_READING, &auth->challenge,
		     sizeof(auth->challenge), BOOT_AUTH_SENDING);
}

enum boot_auth_state boot_auth_step(struct boot_auth *auth,
				    const unsigned char *secret)
{
	while (auth->state == BOOT_AUTH_SENDING ||
	       auth->state == BOOT_AUTH_READING) {
		bool sending = auth->state == BOOT_AUTH_SENDING;
		ssize_t n =
			sending ? boot_sock_send(auth->fd, auth->at, auth->left)
				: boot_sock_recv(auth->fd, auth->at,
						 auth->left);

		if (!n)
			break;
		if (n < 0) {
			auth->state = BOOT_AUTH_STRANGER;
			break;
		}
		auth->at += n;
		auth->left -= (size_t)n;
		if (auth->left)
			continue;
		if (sending)
			sent(auth);
		else if (auth->is_server)
			server_read(auth, secret);
		else
			client_read(auth, secret);
	}
	return auth->state;
}

short boot_auth_events(const struct boot_auth *auth)
{
	return auth->state == BOOT_AUTH_SENDING ? POLLOUT : POLLIN;
}

bool boot_auth_is_promising(const struct boot_auth *auth)
{
	return auth->is_server && auth->challenge.magic[0] == magic[0];
}
