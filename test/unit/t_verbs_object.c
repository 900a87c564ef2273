/* SPDX-License-Identifier: MIT */
/*
 * Goal: objects are made and freed through one convention of errors, and
 * each failure names the device and the cause.  Method: the soft device, with
 * faults injected for what does not fail by itself.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "soft_pair.h"

struct world {
	struct verbs_device *device;
	struct ibv_pd *pd;
};

static int setup(void **state)
{
	static struct world world;
	const struct verbs_table *table;

	assert_int_equal(soft_table(&table), 0);
	assert_int_equal(verbs_device_open(table, "soft0", &world.device), 0);
	assert_int_equal(verbs_pd_new(world.device, &world.pd), 0);
	*state = &world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	verbs_pd_free(world->device, world->pd);
	verbs_device_close(world->device);
	return 0;
}

static void expect_text(const char *what)
{
	if (!strstr(wreath_error_text(), what))
		fail_msg("'%s' is not in: %s", what, wreath_error_text());
}

static void every_object_is_made_and_freed(void **state)
{
	struct world *world = *state;
	struct verbs_device *device = world->device;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap = {4, 4, 1, 1, 0}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	assert_int_equal(verbs_channel_new(device, &channel), 0);
	assert_int_equal(verbs_cq_new(device, 16, channel, &cq), 0);
	assert_ptr_equal(cq->channel, channel);
	init.send_cq = cq;
	init.recv_cq = cq;
	assert_int_equal(verbs_qp_new(device, world->pd, &init, &qp), 0);
	assert_int_equal(verbs_qp_modify(device, qp, &attr,
					 IBV_QP_STATE | IBV_QP_PKEY_INDEX |
						 IBV_QP_PORT |
						 IBV_QP_ACCESS_FLAGS), 0);
	/* A change that is not allowed. */
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(verbs_qp_modify(device, qp, &attr, IBV_QP_STATE),
			 WREATH_EINVAL);
	expect_text("soft0");
	verbs_qp_free(device, qp);
	verbs_cq_free(device, cq);
	verbs_channel_free(device, channel);
	verbs_qp_free(device, NULL);
	verbs_cq_free(device, NULL);
	verbs_channel_free(device, NULL);
	verbs_mr_free(device, NULL);
	verbs_pd_free(device, NULL);
}

static void failures_are_told_with_device_and_cause(void **state)
{
	struct world *world = *state;
	struct verbs_device *device = world->device;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	struct ibv_cq *cq = NULL, *none = NULL;
	struct ibv_qp *qp = NULL;
	struct ibv_mr *mr = NULL;
	static char buf[64];

	assert_int_equal(soft_fault(device->context, "fail_cq=1"), 0);
	assert_int_equal(verbs_cq_new(device, 16, NULL, &none), WREATH_ENOMEM);
	expect_text("soft0");
	assert_null(none);
	assert_int_equal(verbs_cq_new(device, 1 << 30, NULL, &none),
			 WREATH_EINVAL);
	assert_int_equal(verbs_cq_new(device, 16, NULL, &cq), 0);
	init.send_cq = cq;
	init.recv_cq = cq;
	assert_int_equal(soft_fault(device->context, "fail_qp=1"), 0);
	assert_int_equal(verbs_qp_new(device, world->pd, &init, &qp),
			 WREATH_ENOMEM);
	expect_text("soft0");
	init.qp_type = IBV_QPT_RAW_PACKET;
	assert_int_equal(verbs_qp_new(device, world->pd, &init, &qp),
			 WREATH_EUNSUP);
	assert_null(qp);
	assert_int_equal(soft_fault(device->context, "fail_reg=1"), 0);
	assert_int_equal(verbs_mr_new(device, world->pd, buf, 64, -1, 0, 0,
				      &mr), WREATH_ENOMEM);
	expect_text("64 bytes");
	assert_null(mr);
	assert_int_equal(verbs_mr_new(device, world->pd, buf, 64, -1, 0,
				      IBV_ACCESS_REMOTE_WRITE, &mr),
			 WREATH_EINVAL);
	verbs_cq_free(device, cq);
}

static void memory_is_registered_by_address_and_by_descriptor(void **state)
{
	struct world *world = *state;
	struct verbs_device *device = world->device;
	struct ibv_mr *mr;
	static char buf[64];
	char *mapped;
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(verbs_mr_new(device, world->pd, buf, 64, -1, 0,
				      PAIR_ACCESS, &mr), 0);
	verbs_mr_free(device, mr);
	assert_int_equal(ftruncate(fd, 8192), 0);
	mapped = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_int_equal(verbs_mr_new(device, world->pd, mapped + 4096, 4096,
				      fd, 4096, PAIR_ACCESS, &mr), 0);
	assert_int_equal(mr->length, 4096);
	verbs_mr_free(device, mr);
	munmap(mapped, 8192);
	close(fd);
}

/* As a driver without them says it, and a rdma-core without the call. */
static struct ibv_mr *refuse_dmabuf(struct ibv_pd *pd, uint64_t offset,
				    size_t length, uint64_t iova, int fd,
				    int access)
{
	(void)pd;
	(void)offset;
	(void)length;
	(void)iova;
	(void)fd;
	(void)access;
	errno = EOPNOTSUPP;
	return NULL;
}

static void dmabufs_are_registered_or_it_is_said_why_not(void **state)
{
	struct world *world = *state;
	struct verbs_device device = *world->device;
	struct verbs_table without = *device.verbs;
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct ibv_mr *mr;

	assert_int_equal(ftruncate(fd, 8192), 0);
	assert_int_equal(verbs_mr_dmabuf(&device, world->pd, fd, 100, 5000,
					 0x5064, PAIR_ACCESS, &mr), 0);
	assert_int_equal(mr->length, 5000);
	verbs_mr_free(&device, mr);
	assert_int_equal(verbs_mr_dmabuf(&device, world->pd, fd, 100, 8192,
					 0x5064, PAIR_ACCESS, &mr),
			 WREATH_EINVAL);
	expect_text("8192 bytes");
	device.verbs = &without;
	without.reg_dmabuf_mr = refuse_dmabuf;
	assert_int_equal(verbs_mr_dmabuf(&device, world->pd, fd, 100, 5000,
					 0x5064, PAIR_ACCESS, &mr),
			 WREATH_EUNSUP);
	expect_text("soft0");
	expect_text("Linux 5.12");
	without.reg_dmabuf_mr = NULL;
	assert_int_equal(verbs_mr_dmabuf(&device, world->pd, fd, 100, 5000,
					 0x5064, PAIR_ACCESS, &mr),
			 WREATH_EUNSUP);
	expect_text("rdma-core 34");
	close(fd);
}

static void address_handle_is_only_tried(void **state)
{
	struct world *world = *state;
	struct ibv_gid_entry entry;
	struct ibv_ah_attr attr = {.port_num = 1, .is_global = 1,
				   .grh.hop_limit = 1};

	assert_int_equal(verbs_gid(world->device, 1, 0, &entry), 0);
	attr.grh.dgid = entry.gid;
	assert_int_equal(verbs_ah_try(world->device, world->pd, &attr), 0);
	attr.is_global = 0;
	assert_int_equal(verbs_ah_try(world->device, world->pd, &attr),
			 WREATH_EINVAL);
	expect_text("soft0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_object_is_made_and_freed),
		cmocka_unit_test(failures_are_told_with_device_and_cause),
		cmocka_unit_test(
			memory_is_registered_by_address_and_by_descriptor),
		cmocka_unit_test(dmabufs_are_registered_or_it_is_said_why_not),
		cmocka_unit_test(address_handle_is_only_tried),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, setup, teardown);
}
