# SPDX-License-Identifier: MIT
# wreath: one Makefile, no configure.  Local choices go into config.mak.
#
#   make run           set up, build, and run the ring all-reduce of 4 ranks
#   make check         set up, and run every test and check of this machine
#   make test          the fast part, some minutes
#   make               build, nothing else
#   make check-rxe     the part of it that runs on kernel soft-RoCE in a
#                      virtual machine, and on this host's RDMA devices
#   make vm            a shell in that machine
#   make check-gpu     what wants an NVIDIA GPU, in some minutes; its figures
#   make bench-peers   this library and others on one machine, side by side
#   make bench-sim     the simulator against real ranks on slow soft ports
#   make bench-rxe     the same on soft-RoCE, beside perftest's limits
#   make install       PREFIX=/usr/local DESTDIR=
#   make SAN=address,undefined test    a variant, in a folder of its own
#
# NO_DEPS=1 installs no packages, V=1 shows the commands, WERROR=1 makes
# warnings fail, OPT="-O0 -g" and CC=clang choose how to compile.  Kernels for
# GPUs are in where nvcc is found in CUDA=/usr/local/cuda or PATH; NVCC= leaves
# them out.
-include config.mak

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/wreath
CC ?= cc
CXX ?= c++
LD ?= ld
CUDA ?= /usr/local/cuda
NVCC ?= $(firstword $(wildcard $(CUDA)/bin/nvcc) \
	$(shell command -v nvcc 2>/dev/null))
OBJCOPY ?= objcopy
OPT ?= -O2 -g
Q := $(if $(V),,@)

# A variant is a folder: nothing is ever built twice in one place.
comma := ,
cc_name := $(filter-out cc gcc,$(notdir $(lastword $(CC))))
B := build$(if $(cc_name),-$(cc_name))$(if $(SAN),-$(subst $(comma),-,$(SAN)))

# wreath.h is the only place that knows the version.
version := $(shell awk '/define WREATH_VERSION_(MAJOR|MINOR|PATCH)/ \
	{ printf "%s%s", s, $$3; s = "." }' include/wreath.h)
major := $(firstword $(subst ., ,$(version)))
soname := libwreath.so.$(major)
real := libwreath.so.$(version)
nccl := libwreath-nccl.so.$(major)

warn := -Wall -Wextra -Wshadow -Wvla -Wundef -Wwrite-strings \
	-Wpointer-arith -Wformat=2 -Wcast-qual -fno-common \
	$(if $(WERROR),-Werror)
warn_c := -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
	-Wdeclaration-after-statement $(if $(findstring clang,$(CC)),\
	-Wshorten-64-to-32 -Wunreachable-code -Wmissing-variable-declarations)
san := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all \
	-fno-omit-frame-pointer)
# gcc knows that its thread sanitizer sees no fences; what they order here is
# atomic all the same.
san += $(if $(findstring thread,$(SAN)),$(if $(findstring clang,$(CC)),,\
	-Wno-tsan))
cppflags := -Iinclude -Ilib -I. $(CPPFLAGS)
common := $(OPT) $(warn) $(san) -fvisibility=hidden -fPIC -pthread
cflags := -std=gnu11 $(common) $(warn_c) $(CFLAGS)
cxxflags := -std=c++11 $(common) $(CXXFLAGS)
ldflags := $(san) -pthread $(LDFLAGS)
ldlibs := -lsodium -ldl -lm $(LDLIBS)

# lib/nccl is a library of its own, which uses this one as any program does.
lib_src := $(filter-out lib/nccl/%,$(sort $(wildcard lib/*/*.c)))
lib_obj := $(lib_src:%.c=$B/%.o)
nccl_obj := $(patsubst %.c,$B/%.o,$(sort $(wildcard lib/nccl/*.c)))
bench_obj := $(patsubst %.c,$B/%.o,$(sort $(wildcard bench/*.c)))
unit_bin := $(patsubst %.c,$B/%,$(sort $(wildcard test/unit/t_*.c)))
vm_bin := $(patsubst %.c,$B/%,$(sort $(wildcard test/vm/*.c)))
loop_bin := $(patsubst %.c,$B/%,$(sort $(wildcard test/loop/t_*.c)))
gpu_bin := $(patsubst %.c,$B/%,$(sort $(wildcard test/gpu/t_*.c)))
# What test programs of one folder share: its other .c files.
unit_help := $(patsubst %.c,$B/%.o,$(filter-out test/unit/t_%,\
	$(sort $(wildcard test/unit/*.c))))
loop_help := $(patsubst %.c,$B/%.o,$(filter-out test/loop/t_%,\
	$(sort $(wildcard test/loop/*.c))))
dropin_obj := $(patsubst %.c,$B/%.o,$(sort $(wildcard test/dropin/*.c)))
cuda_obj := $(patsubst %.c,$B/%.o,$(sort $(wildcard test/cuda/*.c)))
# One example is a CUDA program.
cuda_h := $(wildcard $(CUDA)/include/cuda.h)
example_src := $(filter-out $(if $(cuda_h),,examples/05_gpu.c),\
	$(sort $(wildcard examples/*.c examples/*.cc)))
example_bin := $(addprefix $B/,$(basename $(example_src)))
# nccl-tests' names for parts of the command.
aliases := $(addsuffix _perf,all_reduce reduce broadcast reduce_scatter \
	all_gather gather scatter alltoall sendrecv)
command := $(if $(bench_obj),$B/wreath $(addprefix $B/,$(aliases)))
man := $(sort $(wildcard man/*.[1-8]))

# NCCL's name stands in a folder of its own, so that nothing finds it by
# accident, with the library that it needs beside it.
nccl_links := $B/nccl/libnccl.so.2 $B/nccl/libnccl.so $B/nccl/$(soname)

all: $B/$(soname) $B/libwreath.so $B/libwreath.a $(command) \
	$B/libwreath-nccl.so $(nccl_links)
unit: $(unit_bin)
loop: $(loop_bin)
gpu: $(gpu_bin) $B/cuda/libcuda.so.1
examples: $(example_bin)
# Gloo has its own program, where it is installed.
gloo := $(if $(SAN),,$(wildcard /usr/include/gloo/transport/ibverbs/device.h))
dropin: $B/soft/libibverbs.so.1 $B/soft/ucx.so $(if $(gloo),$B/soft/gloo)
# Everything that the tests run.
bins: all unit loop examples dropin nccl-test $B/cuda/libcuda.so.1 $(vm_bin) \
	$(gpu_bin)

# Written only when it differs, so that other flags mean other objects.
flags := $(CC) $(cppflags) $(filter-out -Werror,$(cflags)) $(ldflags)
$B/flags: force
	@mkdir -p $(@D); echo '$(flags)' | cmp -s - $@ || echo '$(flags)' >$@

$B/%.o: %.c $B/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(cppflags) $(cflags) $(simd) $(visible) $(own) -MMD -MP \
		-c $< -o $@

$B/%.o: %.cc $B/flags
	@mkdir -p $(@D)
	$(Q)$(CXX) $(cppflags) $(cxxflags) -MMD -MP -c $< -o $@

# SIMD lives in files named for it; the rest must run on any processor.  The
# bits of a result may not depend on what a compiler contracts to an FMA.
$(filter $B/lib/reduce/%,$(lib_obj)): simd := -ffp-contract=off
ifneq ($(filter x86_64-%,$(shell $(CC) -dumpmachine 2>/dev/null)),)
$(filter $B/lib/reduce/avx2%,$(lib_obj)): simd := -ffp-contract=off -mavx2 \
	-mf16c -mfma
$(filter $B/lib/reduce/avx512%,$(lib_obj)): simd := -ffp-contract=off \
	-mavx512f -mavx512bw -mavx512dq -mavx512vl -mf16c
endif

# The kernels of GPUs, one image for all variants: code for the first chip of
# each generation (89 has instructions of its own for 8-bit floats), which the
# others of it run, and PTX for generations to come.  Only two kinds of PTX are
# made on the way, with those instructions and without: the first half of nvcc
# takes the longer.  What wreath.h has of it are the numbers of operations, and
# they stay as they are (c_layout.sh): another change there makes nothing.
gpu := $(if $(NVCC),build/gpu/reduce.fatbin)
gpu_code := $(if $(NVCC),$(patsubst sm_%,%,$(filter $(addprefix sm_,\
	70 75 80 89 90 100 110 120),$(shell $(NVCC) --list-gpu-code))))
gpu_old := $(firstword $(gpu_code))
gpu_late := $(or $(filter 89,$(gpu_code)),$(gpu_old))
gpu_ptx = $(if $(filter 70 75 80,$1),$(gpu_old),$(gpu_late))
gpu_flags := -std=c++17 -O3 -fmad=false -ftz=false -prec-div=true -Iinclude \
	-Ilib -t 0 -Xfatbin -compress-all -allow-unsupported-compiler \
	$(foreach a,$(gpu_code),\
	-gencode=arch=compute_$(call gpu_ptx,$a),code=sm_$a) \
	-gencode=arch=compute_$(gpu_late),code=compute_$(gpu_late) $(NVCCFLAGS)
build/gpu/flags: force
	@mkdir -p $(@D); echo '$(NVCC) $(gpu_flags)' | cmp -s - $@ || \
		echo '$(NVCC) $(gpu_flags)' >$@

build/gpu/reduce.fatbin: build/gpu/flags $(addprefix lib/reduce/,gpu.cu \
		gpu.h gpu.inc number.h scalar.inc scalar_kernels.inc)
	$(Q)$(NVCC) -fatbin $(gpu_flags) lib/reduce/gpu.cu -o $@.$$$$ && \
		mv $@.$$$$ $@

# A variant remembers whether it has the image.
$B/gpu_image: force
	@mkdir -p $(@D); echo '$(gpu)' | cmp -s - $@ || echo '$(gpu)' >$@
$B/lib/reduce/gpu_image.o: $B/gpu_image $(gpu)
$B/lib/reduce/gpu_image.o: simd := $(if $(gpu),-DREDUCE_GPU_FATBIN='"$(gpu)"')

# The workbench and the tests reach the rooms' doors, so they link this one.
$B/lib.a: $(lib_obj)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$B/$(real): $(lib_obj) lib/wreath.map
	$(Q)$(CC) -shared -Wl,-soname,$(soname) \
		-Wl,--version-script=lib/wreath.map -Wl,-z,relro,-z,now \
		-Wl,--as-needed $(ldflags) $(lib_obj) $(ldlibs) -o $@

$B/$(soname) $B/libwreath.so: $B/$(real)
	$(Q)ln -sf $(real) $@

# One object in which only the public names are left: a program that links it
# may have functions called as ours are.
$B/libwreath.a: $(lib_obj)
	$(Q)rm -f $@ && $(LD) -r $^ -o $B/wreath.o && \
		$(OBJCOPY) --localize-hidden $B/wreath.o && \
		$(AR) rcs $@ $B/wreath.o

# Its own SONAME: preloaded, it must not stand for the library whose names it
# takes, in which a program may look for others.  It calls its own functions,
# also where that library came first.
$B/$(nccl): $(nccl_obj) lib/nccl/nccl.map $B/$(soname) $B/libwreath.so
	$(Q)$(CC) -shared -Wl,-soname,$(nccl) \
		-Wl,--version-script=lib/nccl/nccl.map -Wl,-z,relro,-z,now \
		-Wl,-Bsymbolic-functions -Wl,-rpath,'$$ORIGIN' $(ldflags) \
		$(nccl_obj) -L$B -lwreath $(LDLIBS) -o $@

$B/libwreath-nccl.so: $B/$(nccl)
	$(Q)ln -sf $(nccl) $@

$B/nccl/libnccl.so.2 $B/nccl/libnccl.so: $B/$(nccl)
	@mkdir -p $(@D)
	$(Q)ln -sf ../$(nccl) $@

$B/nccl/$(soname): $B/$(soname)
	@mkdir -p $(@D)
	$(Q)ln -sf ../$(soname) $@

$B/wreath: $(bench_obj) $B/lib.a
	$(Q)$(CC) $(ldflags) $^ $(ldlibs) -o $@

$(addprefix $B/,$(aliases)): $B/wreath
	$(Q)ln -sf wreath $@

$B/test/unit/%: $B/test/unit/%.o $(unit_help) $B/lib.a
	$(Q)$(CC) $(ldflags) $^ -lcmocka $(ldlibs) -o $@

$B/test/loop/%: $B/test/loop/%.o $(loop_help) $B/lib.a
	$(Q)$(CC) $(ldflags) $^ -lcmocka $(ldlibs) -o $@

# Programs that want a GPU, or the simulated one.
$B/test/gpu/%: $B/test/gpu/%.o $(loop_help) $B/lib.a
	$(Q)$(CC) $(ldflags) $^ -lcmocka $(ldlibs) -o $@

# Programs that run in virtual machines only.
$B/test/vm/%: $B/test/vm/%.o $(loop_help) $B/lib.a
	$(Q)$(CC) $(ldflags) $^ -lcmocka $(ldlibs) -o $@

# libibverbs over the soft device, for programs that judge it.
$(dropin_obj): visible := -fvisibility=default
$B/soft/libibverbs.so.1: $(dropin_obj) $B/lib.a test/dropin/dropin.map
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libibverbs.so.1 \
		-Wl,--version-script=test/dropin/dropin.map \
		-Wl,-z,relro,-z,now $(ldflags) $(dropin_obj) $B/lib.a \
		$(ldlibs) -o $@

# A simulation of CUDA's driver, which tests find by its path.
$(cuda_obj): visible := -fvisibility=default
$B/cuda/libcuda.so.1: $(cuda_obj) $B/lib.a test/cuda/cuda.map
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libcuda.so.1 \
		-Wl,--version-script=test/cuda/cuda.map \
		-Wl,-z,relro,-z,now,-z,nodelete $(ldflags) $(cuda_obj) \
		$B/lib.a $(ldlibs) -o $@
$(unit_bin) $(loop_bin): | $B/cuda/libcuda.so.1

$B/soft/ucx.so: $B/test/dropin/preload/ucx.o
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(ldflags) $^ -o $@
$B/test/dropin/preload/ucx.o: visible := -fvisibility=default

$B/soft/gloo: test/dropin/gloo.cc $B/flags
	@mkdir -p $(@D)
	$(Q)$(CXX) $(common) -std=c++14 $(CXXFLAGS) $< $(ldflags) -lgloo -o $@

include test/nccl/rules.mk

# Examples see what a customer sees: the header and the library.
$B/examples/05_gpu.o: own := -isystem $(dir $(cuda_h))
$B/examples/05_gpu: $B/cuda/libcuda.so.1
$B/examples/05_gpu: own = -L$B/cuda -l:libcuda.so.1
$B/examples/%: $B/examples/%.o $B/$(soname) $B/libwreath.so
	$(Q)$(if $(wildcard examples/$*.cc),$(CXX),$(CC)) $(ldflags) $< \
		-L$B -Wl,-rpath,'$$ORIGIN/..' -lwreath -lm $(own) -o $@

# ---- the two commands, and the fast part ----

setup := $(if $(NO_DEPS),@:,@test/setup.sh)
tests := B='$B' SAN='$(SAN)' CC='$(CC)' CXX='$(CXX)' \
	MAKE='$(MAKE)' test/run.sh

run:
	$(setup) run
	@$(MAKE) --no-print-directory all
	$B/wreath perf all_reduce -g 4 -b 8 -e 64M -f 4

check:
	$(setup) check
	@$(tests) check

test:
	$(setup) test
	@$(tests) test

# rdma-core's tests on the soft device and on soft-RoCE, side by side.
conformance:
	$(setup) check
	@$(MAKE) --no-print-directory dropin
	test/dropin/conformance.sh $B

check-rxe:
	$(setup) check
	@$(tests) rxe

vm:
	$(setup) check
	@$(MAKE) --no-print-directory all
	@test/vm/vm.sh -n shell -i

check-gpu:
	$(setup) test
	@MAKE='$(MAKE)' test/gpu/run.sh '$B' || [ $$? = 77 ]

bench-rxe:
	$(setup) check
	@$(MAKE) --no-print-directory $B/wreath
	@bench/rxe/run.sh $B

bench-sim:
	$(setup) check
	@$(MAKE) --no-print-directory $B/wreath
	@bench/sim/run.sh $B

bench-peers:
	$(setup) peers
	@$(MAKE) --no-print-directory $B/wreath
	@NO_DEPS=1 bench/peers/run.sh $B

# ---- install ----

dest := $(DESTDIR)$(PREFIX)
$B/wreath.pc: lib/wreath.pc.in force
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@VERSION@|$(version)|' $< >$@

install: all $B/wreath.pc
	install -d $(dest)/include $(dest)/bin $(DESTDIR)$(LIBDIR)/pkgconfig
	install -m 644 include/wreath.h $(dest)/include
	install -m 755 $B/$(real) $(DESTDIR)$(LIBDIR)
	ln -sf $(real) $(DESTDIR)$(LIBDIR)/$(soname)
	ln -sf $(soname) $(DESTDIR)$(LIBDIR)/libwreath.so
	install -m 644 $B/libwreath.a $(DESTDIR)$(LIBDIR)
	install -m 755 $B/$(nccl) $(DESTDIR)$(LIBDIR)
	ln -sf $(nccl) $(DESTDIR)$(LIBDIR)/libwreath-nccl.so
	install -d $(DESTDIR)$(LIBDIR)/wreath/nccl $(dest)/include/wreath-nccl
	for name in libnccl.so.2 libnccl.so; do \
		ln -sf ../../$(nccl) \
			$(DESTDIR)$(LIBDIR)/wreath/nccl/$$name || exit; \
	done
	ln -sf ../../$(soname) $(DESTDIR)$(LIBDIR)/wreath/nccl
	install -m 644 lib/nccl/nccl.h $(dest)/include/wreath-nccl
	install -m 644 $B/wreath.pc $(DESTDIR)$(LIBDIR)/pkgconfig
	install -m 755 $B/wreath $(dest)/bin
	for name in $(aliases); do \
		ln -sf wreath $(dest)/bin/$$name || exit; \
	done
	for page in $(man); do \
		install -D -m 644 -t \
			$(DESTDIR)$(MANDIR)/man$${page##*.} $$page || exit; \
	done
	install -d $(DESTDIR)$(DOCDIR)/examples
	install -m 644 LICENSE $(wildcard README.md) $(DESTDIR)$(DOCDIR)
	$(if $(example_src),install -m 644 $(wildcard examples/*) \
		$(DESTDIR)$(DOCDIR)/examples)
	$(if $(DESTDIR),,ldconfig 2>/dev/null || true)

uninstall:
	rm -f $(dest)/include/wreath.h $(DESTDIR)$(LIBDIR)/libwreath.a \
		$(DESTDIR)$(LIBDIR)/libwreath.so* \
		$(DESTDIR)$(LIBDIR)/libwreath-nccl.so* \
		$(DESTDIR)$(LIBDIR)/pkgconfig/wreath.pc \
		$(addprefix $(dest)/bin/,wreath $(aliases))
	for page in $(notdir $(man)); do \
		rm -f $(DESTDIR)$(MANDIR)/man$${page##*.}/$$page; \
	done
	rm -rf $(DESTDIR)$(DOCDIR) $(dest)/include/wreath-nccl \
		$(DESTDIR)$(LIBDIR)/wreath

clean:
	rm -rf build build-*

.PHONY: all unit loop gpu examples dropin nccl-test bins run check test \
	conformance check-rxe check-gpu vm bench-rxe bench-sim bench-peers \
	install uninstall clean force
.DELETE_ON_ERROR:
.SECONDARY:
-include $(lib_obj:.o=.d) $(nccl_obj:.o=.d) $(bench_obj:.o=.d) \
	$(unit_bin:=.d) $(loop_bin:=.d) $(vm_bin:=.d) $(gpu_bin:=.d) \
	$(unit_help:.o=.d) $(loop_help:.o=.d) $(example_bin:=.d) \
	$(dropin_obj:.o=.d) $(cuda_obj:.o=.d)
