/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "id.h"

/*
 * The sum is no protection: it tells a cut or mistyped id from a good one
 * before any rank waits for a root that cannot exist.
 */
struct id_wire {
	unsigned char magic[4];
	uint8_t version;
	uint8_t n_addrs;
	uint8_t n_ports;
	uint8_t zero;
	struct boot_addr addrs[BOOT_ID_ADDRS];
	unsigned char secret[BOOT_SECRET_BYTES];
	unsigned char zeros[20];
	unsigned char sum[8];
};
_Static_assert(sizeof(struct id_wire) == sizeof(struct wreath_unique_id),
	       "the id is the wire form");

static const unsigned char id_magic[4] = {'W', 'R', 'T', 'H'};
#define ID_VERSION 1

static void sum_of(const struct id_wire *wire, unsigned char sum[8])
{
	unsigned char hash[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(hash, (const unsigned char *)wire,
			   offsetof(struct id_wire, sum));
	memcpy(sum, hash, 8);
}

void boot_id_encode(const struct boot_id *id, struct wreath_unique_id *out)
{
	struct id_wire wire;

	memset(&wire, 0, sizeof(wire));
	memcpy(wire.magic, id_magic, sizeof(id_magic));
	wire.version = ID_VERSION;
	wire.n_addrs = (uint8_t)id->n_addrs;
	wire.n_ports = (uint8_t)id->n_ports;
	memcpy(wire.addrs, id->addrs,
	       sizeof(wire.addrs[0]) * (size_t)id->n_addrs);
	memcpy(wire.secret, id->secret, sizeof(wire.secret));
	sum_of(&wire, wire.sum);
	memcpy(out->bytes, &wire, sizeof(wire));
}

int boot_id_decode(const struct wreath_unique_id *in, struct boot_id *id)
{
	struct id_wire wire;
	unsigned char sum[8];
	int i;

	memcpy(&wire, in->bytes, sizeof(wire));
	if (memcmp(wire.magic, id_magic, sizeof(id_magic)))
		return base_error(WREATH_EINVAL,
				  "the unique id is not one: its first bytes "
				  "are %02x%02x%02x%02x, not 57525448; was it "
				  "carried to this rank whole?",
				  wire.magic[0], wire.magic[1], wire.magic[2],
				  wire.magic[3]);
	if (wire.version != ID_VERSION)
		return base_error(WREATH_EINVAL,
				  "the unique id is of version %d, this "
				  "library reads version %d: use one version "
				  "of wreath on every rank",
				  wire.version, ID_VERSION);
	sum_of(&wire, sum);
	if (memcmp(sum, wire.sum, sizeof(sum)))
		return base_error(WREATH_EINVAL,
				  "the unique id is damaged: its sum does not "
				  "fit its bytes; carry all 128 bytes");
	if (wire.n_addrs < 1 || wire.n_addrs > BOOT_ID_ADDRS ||
	    wire.n_ports < 1)
		return base_error(WREATH_EINVAL,
				  "the unique id has %d addresses, not 1 to "
				  "%d",
				  wire.n_addrs, BOOT_ID_ADDRS);
	memset(id, 0, sizeof(*id));
	id->n_addrs = wire.n_addrs;
	id->n_ports = wire.n_ports;
	for (i = 0; i < id->n_addrs; i++)
		id->addrs[i] = wire.addrs[i];
	memcpy(id->secret, wire.secret, sizeof(id->secret));
	return 0;
}

unsigned int boot_addr_port(const struct boot_addr *addr)
{
	return ntohs(addr->port_be);
}

void boot_addr_set_port(struct boot_addr *addr, unsigned int port)
{
	addr->port_be = htons((uint16_t)port);
}

void boot_addr_text(const struct boot_addr *addr, char text[BOOT_ADDR_TEXT])
{
	char ip[INET6_ADDRSTRLEN];

	if (addr->family == 4 && inet_ntop(AF_INET, addr->ip, ip, sizeof(ip)))
		snprintf(text, BOOT_ADDR_TEXT, "%s:%u", ip,
			 boot_addr_port(addr));
	else if (addr->family == 6 &&
		 inet_ntop(AF_INET6, addr->ip, ip, sizeof(ip)))
		snprintf(text, BOOT_ADDR_TEXT, "[%s]:%u", ip,
			 boot_addr_port(addr));
	else
		snprintf(text, BOOT_ADDR_TEXT, "(no address)");
}

socklen_t boot_addr_to_sock(const struct boot_addr *addr,
			    struct sockaddr_storage *out)
{
	struct sockaddr_in in4 = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

	memset(out, 0, sizeof(*out));
	if (addr->family == 4) {
		in4.sin_port = addr->port_be;
		memcpy(&in4.sin_addr, addr->ip, 4);
		memcpy(out, &in4, sizeof(in4));
		return sizeof(in4);
	}
	if (addr->family == 6) {
		in6.sin6_port = addr->port_be;
		memcpy(&in6.sin6_addr, addr->ip, 16);
		memcpy(out, &in6, sizeof(in6));
		return sizeof(in6);
	}
	return 0;
}

bool boot_addr_from_sock(const struct sockaddr *in, struct boot_addr *addr)
{
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;

	memset(addr, 0, sizeof(*addr));
	if (in->sa_family == AF_INET) {
		memcpy(&in4, in, sizeof(in4));
		addr->family = 4;
		addr->port_be = in4.sin_port;
		memcpy(addr->ip, &in4.sin_addr, 4);
		return true;
	}
	if (in->sa_family == AF_INET6) {
		memcpy(&in6, in, sizeof(in6));
		addr->family = 6;
		addr->port_be = in6.sin6_port;
		memcpy(addr->ip, &in6.sin6_addr, 16);
		return true;
	}
	return false;
}

void boot_id_to_hex(const struct wreath_unique_id *id, char hex[257])
{
	sodium_bin2hex(hex, 257, id->bytes, sizeof(id->bytes));
}

static int parse_hex(const char *text, const char *from,
		     struct wreath_unique_id *out)
{
	struct wreath_unique_id id;
	struct boot_id decoded;
	size_t n = strlen(text);
	size_t got;

	if (n != 2 * sizeof(id.bytes) ||
	    sodium_hex2bin(id.bytes, sizeof(id.bytes), text, n, NULL, &got,
			   NULL) ||
	    got != sizeof(id.bytes))
		return base_error(WREATH_EINVAL,
				  "%s holds no unique id: %zu characters, of "
				  "which not all are hexadecimal digits, "
				  "where there must be 256 digits",
				  from, n);
	if (boot_id_decode(&id, &decoded))
		return WREATH_EINVAL;
	*out = id;
	return 0;
}

/* Whoever can write the file chooses whom we talk to; who reads it may join. */
static int check_private(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st))
		return base_error(WREATH_EINVAL,
				  "WREATH_COMM_ID: stat of "
				  "'%.256s' failed: %s",
				  path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return base_error(WREATH_EINVAL,
				  "WREATH_COMM_ID: '%.256s' is "
				  "not a regular file",
				  path);
	if (st.st_uid != geteuid())
		return base_error(WREATH_EINVAL,
				  "WREATH_COMM_ID: '%.256s' belongs to user "
				  "%d, not to user %d who runs this process; "
				  "make a copy of your own, with mode 600",
				  path, (int)st.st_uid, (int)geteuid());
	if (st.st_mode & 077)
		return base_error(WREATH_EINVAL,
				  "WREATH_COMM_ID: '%.256s' has mode %03o and "
				  "is open to others, but holds a secret; do "
				  "'chmod 600' on it and make a fresh id",
				  path, (unsigned int)st.st_mode & 0777);
	return 0;
}

static int parse_file(const char *path, struct wreath_unique_id *out)
{
	char text[2 * sizeof(out->bytes) + 8];
	size_t have = 0;
	int err;
	/* Not to hang in open() where the path is a pipe. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return base_error(WREATH_EINVAL,
				  "WREATH_COMM_ID: the file "
				  "'%.256s' cannot be opened: %s",
				  path, strerror(errno));
	err = check_private(fd, path);
	while (!err && have < sizeof(text) - 1) {
		ssize_t n = read(fd, text + have, sizeof(text) - 1 - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err = base_error(WREATH_EINVAL,
					 "WREATH_COMM_ID: read "
					 "of '%.256s' failed: %s",
					 path, strerror(errno));
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	close(fd);
	if (err)
		return err;
	while (have && (text[have - 1] == '\n' || text[have - 1] == '\r'))
		have--;
	text[have] = 0;
	err = parse_hex(text, path, out);
	sodium_memzero(text, sizeof(text));
	return err;
}

int boot_id_parse(const char *text, struct wreath_unique_id *id)
{
	if (text[0] == '@')
		return parse_file(text + 1, id);
	return parse_hex(text, "WREATH_COMM_ID", id);
}
