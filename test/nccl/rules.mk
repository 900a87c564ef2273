# SPDX-License-Identifier: MIT
# How the programs of NCCL are built; a part of the Makefile.

# A program of NCCL, compiled with our header and with NCCL's own, if there.
nccl_h := $(firstword $(wildcard /usr/local/cuda/include/nccl.h \
	/usr/local/include/nccl.h /usr/include/nccl.h))
nccl_test := $(foreach kind,own $(if $(nccl_h),theirs),$(addprefix \
	$B/test/nccl/$(kind)/,abi rpath layout)) $B/test/nccl/env \
	$B/test/nccl/own/gpu
nccl-test: $(nccl_test)

# A library of NCCL's name, in which every function traps: what a program was
# linked with, and must not be what it runs with.
$B/test/nccl/stub/libnccl.so.2: $B/$(nccl)
	@mkdir -p $(@D)
	$(Q)nm -D --defined-only $< | awk '$$3 ~ /^p?nccl/ { \
		print "void " $$3 "(void);\nvoid " $$3 "(void)"; \
		print "{ __builtin_trap(); }" }' | \
		$(CC) -shared -fPIC $(ldflags) -Wl,-soname,libnccl.so.2 \
		-x c - -o $@
	$(Q)ln -sf libnccl.so.2 $(@D)/libnccl.so

$B/test/nccl/own/%.o: test/nccl/%.c $B/flags
	@mkdir -p $(@D)
	$(Q)$(CC) -Ilib/nccl -I. $(cflags) -MMD -MP -c $< -o $@

$B/test/nccl/theirs/%.o: test/nccl/%.c $B/flags
	@mkdir -p $(@D)
	$(Q)$(CC) -isystem $(dir $(nccl_h)) $(cflags) -MMD -MP -c $< -o $@

nccl_link = $(Q)$(CC) $(ldflags) -Wl,-z,now $(filter %.o,$^) \
	-L$B/test/nccl/stub -lnccl -o $@
abi_obj := kit.o abi.o collectives.o life.o nonblocking.o bad.o
$B/test/nccl/%/abi: $(addprefix $B/test/nccl/%/,$(abi_obj)) \
		$B/test/nccl/stub/libnccl.so.2
	$(nccl_link)
$B/test/nccl/%/rpath: $(addprefix $B/test/nccl/%/,$(abi_obj)) \
		$B/test/nccl/stub/libnccl.so.2
	$(nccl_link) -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../stub'
# With a driver of CUDA, which is looked up where it runs.
$B/test/nccl/own/gpu: $(addprefix $B/test/nccl/own/,kit.o gpu.o gpu_more.o) \
		$B/test/nccl/stub/libnccl.so.2 $B/cuda/libcuda.so.1
	$(nccl_link) -L$B/cuda -l:libcuda.so.1
$B/test/nccl/%/layout: $B/test/nccl/%/layout.o
	$(Q)$(CC) $(ldflags) $^ -o $@
# What maps variables, by itself.
$B/test/nccl/env: $B/test/nccl/env.o $(addprefix $B/lib/nccl/,env.o list.o \
		log.o map.o vars.o) $B/$(soname) $B/libwreath.so
	$(Q)$(CC) $(ldflags) $(filter %.o,$^) -L$B -lwreath \
		-Wl,-rpath,'$$ORIGIN/../..' -o $@

-include $(wildcard $B/test/nccl/*.d $B/test/nccl/*/*.d)
