/* SPDX-License-Identifier: MIT */
/*
 * Goal: an id that was cut, changed or left open to others is refused with the
 * reason; a good one survives every form.  Method: change every byte, every
 * length, every mode of its file.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "boot/id.h"
#include "boot_ranks.h"

static struct boot_id sample(void)
{
	struct boot_id id = {.n_addrs = 2, .n_ports = 16};

	id.addrs[0] = (struct boot_addr){.family = 4, .ip = {10, 1, 2, 3}};
	id.addrs[1] = (struct boot_addr){.family = 6, .ip = {[15] = 1}};
	boot_addr_set_port(&id.addrs[0], 4711);
	boot_addr_set_port(&id.addrs[1], 4712);
	base_random(id.secret, sizeof(id.secret));
	return id;
}

static void an_id_survives_its_bytes(void **state)
{
	struct boot_id id = sample();
	struct wreath_unique_id bytes;
	struct boot_id again;
	char text[BOOT_ADDR_TEXT];

	(void)state;
	boot_id_encode(&id, &bytes);
	assert_int_equal(boot_id_decode(&bytes, &again), 0);
	assert_memory_equal(&id, &again, sizeof(id));
	boot_addr_text(&again.addrs[0], text);
	assert_string_equal(text, "10.1.2.3:4711");
	boot_addr_text(&again.addrs[1], text);
	assert_string_equal(text, "[::1]:4712");
}

static void every_changed_bit_is_noticed(void **state)
{
	struct boot_id id = sample();
	struct wreath_unique_id bytes;
	struct boot_id again;
	int bit;

	(void)state;
	for (bit = 0; bit < 1024; bit++) {
		boot_id_encode(&id, &bytes);
		bytes.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
		assert_int_equal(boot_id_decode(&bytes, &again), WREATH_EINVAL);
		assert_has(wreath_error_text(), "unique id");
	}
	memset(&bytes, 0, sizeof(bytes));
	assert_int_equal(boot_id_decode(&bytes, &again), WREATH_EINVAL);
}

static void an_id_survives_its_digits(void **state)
{
	struct boot_id id = sample();
	struct wreath_unique_id bytes, again;
	char hex[257];
	size_t i;

	(void)state;
	boot_id_encode(&id, &bytes);
	boot_id_to_hex(&bytes, hex);
	assert_int_equal(strlen(hex), 256);
	assert_int_equal(boot_id_parse(hex, &again), 0);
	assert_memory_equal(&bytes, &again, sizeof(bytes));
	for (i = 0; i < 256; i++)
		if (hex[i] >= 'a')
			hex[i] = (char)(hex[i] - 32);
	assert_int_equal(boot_id_parse(hex, &again), 0);
	/* Every other length and a letter too many. */
	for (i = 0; i < 256; i++) {
		char cut[257];

		snprintf(cut, sizeof(cut), "%.*s", (int)i, hex);
		assert_int_equal(boot_id_parse(cut, &again), WREATH_EINVAL);
		memcpy(cut, hex, sizeof(cut));
		cut[i] = 'g';
		assert_int_equal(boot_id_parse(cut, &again), WREATH_EINVAL);
	}
	assert_has(wreath_error_text(), "256 digits");
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ssize_t n = (ssize_t)strlen(text);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, (size_t)n), n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int parse_at(const char *path, struct wreath_unique_id *id)
{
	char at[128];

	snprintf(at, sizeof(at), "@%s", path);
	return boot_id_parse(at, id);
}

static void a_private_file_is_read(void **state)
{
	struct boot_id id = sample();
	struct wreath_unique_id bytes, again;
	char path[] = "/tmp/t_boot_id.XXXXXX";
	char text[300];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	boot_id_encode(&id, &bytes);
	boot_id_to_hex(&bytes, text);
	write_file(path, text, 0600);
	assert_int_equal(parse_at(path, &again), 0);
	assert_memory_equal(&bytes, &again, sizeof(bytes));
	snprintf(text + 256, sizeof(text) - 256, "\r\n");
	write_file(path, text, 0400);
	assert_int_equal(parse_at(path, &again), 0);
	snprintf(text + 256, sizeof(text) - 256, "00");
	write_file(path, text, 0600);
	assert_int_equal(parse_at(path, &again), WREATH_EINVAL);
	write_file(path, "", 0600);
	assert_int_equal(parse_at(path, &again), WREATH_EINVAL);
	unlink(path);
}

static void a_file_open_to_others_is_refused(void **state)
{
	static const mode_t modes[] = {0640, 0604, 0620, 0602,
				       0610, 0601, 0644, 0777};
	struct boot_id id = sample();
	struct wreath_unique_id bytes;
	char path[] = "/tmp/t_boot_id.XXXXXX";
	char text[257];
	int fd = mkstemp(path);
	size_t i;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	boot_id_encode(&id, &bytes);
	boot_id_to_hex(&bytes, text);
	for (i = 0; i < base_countof(modes); i++) {
		write_file(path, text, modes[i]);
		assert_int_equal(parse_at(path, &bytes), WREATH_EINVAL);
		assert_has(wreath_error_text(), "chmod 600");
	}
	if (!geteuid()) {
		write_file(path, text, 0600);
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(parse_at(path, &bytes), WREATH_EINVAL);
		assert_has(wreath_error_text(), "belongs to user 65534");
	}
	unlink(path);
	assert_int_equal(parse_at(path, &bytes), WREATH_EINVAL);
	assert_has(wreath_error_text(), "cannot be opened");
	assert_int_equal(parse_at("/tmp", &bytes), WREATH_EINVAL);
	/* A pipe without a writer must not hold us. */
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(parse_at(path, &bytes), WREATH_EINVAL);
	assert_has(wreath_error_text(), "not a regular file");
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_id_survives_its_bytes),
		cmocka_unit_test(every_changed_bit_is_noticed),
		cmocka_unit_test(an_id_survives_its_digits),
		cmocka_unit_test(a_private_file_is_read),
		cmocka_unit_test(a_file_open_to_others_is_refused),
	};

	alarm(30);
	return cmocka_run_group_tests_name("boot/id", tests, NULL, NULL);
}
