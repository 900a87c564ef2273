/* SPDX-License-Identifier: MIT */
/*
 * What is inside a unique id, and the numeric addresses that boot deals in.
 * Pure functions of their arguments, for any thread.
 */
#ifndef BOOT_ID_H
#define BOOT_ID_H

#include <sys/socket.h>

#include "boot.h"

#define BOOT_SECRET_BYTES 32
#define BOOT_ID_ADDRS 3
#define BOOT_ADDR_TEXT 64

/* As it goes over the wire: 20 bytes, no padding. */
struct boot_addr {
	uint8_t family; /* 4, 6, or 0 for none */
	uint8_t zero;
	uint16_t port_be;
	uint8_t ip[16];
};
_Static_assert(sizeof(struct boot_addr) == 20, "goes over the wire");

struct boot_id {
	int n_addrs;
	int n_ports; /* the root is at port .. port + n_ports - 1 of each */
	struct boot_addr addrs[BOOT_ID_ADDRS];
	unsigned char secret[BOOT_SECRET_BYTES];
};

void boot_id_encode(const struct boot_id *id, struct wreath_unique_id *out);

/* WREATH_EINVAL when the bytes are no unique id of this version. */
int boot_id_decode(const struct wreath_unique_id *in, struct boot_id *id);

unsigned int boot_addr_port(const struct boot_addr *addr);
void boot_addr_set_port(struct boot_addr *addr, unsigned int port);

/* "127.0.0.1:4711" or "[::1]:4711". */
void boot_addr_text(const struct boot_addr *addr, char text[BOOT_ADDR_TEXT]);

/* The length of @out that was filled, or 0 for no family that we know. */
socklen_t boot_addr_to_sock(const struct boot_addr *addr,
			    struct sockaddr_storage *out);

/* False for a family that we do not know. */
bool boot_addr_from_sock(const struct sockaddr *in, struct boot_addr *addr);

#endif
