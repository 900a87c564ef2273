# wreath: one Makefile, no configure.  Local choices go into config.mak.
#
#   make run           set up, build, and run the ring all-reduce of 4 ranks
#   make check         set up, and run every test and check of this machine
#   make test          the fast part, under a minute
#   make install       PREFIX=/usr/local DESTDIR=
#   make SAN=address,undefined test    a variant, in a folder of its own
-include config.mak

PREFIX ?= /usr/local
CC ?= cc
comma := ,
B := build$(if $(SAN),-$(subst $(comma),-,$(SAN)))

version := $(shell awk '/define WREATH_VERSION_(MAJOR|MINOR|PATCH)/ \
	{ printf "%s%s", s, $$3; s = "." }' include/wreath.h)

WARN := -Wall -Wextra -Wshadow -Wvla -Wundef -Wstrict-prototypes \
	-Wmissing-prototypes -Wold-style-definition -Wwrite-strings \
	-Wpointer-arith -Wformat=2 -Wcast-qual \
	-Wdeclaration-after-statement -fno-common $(if $(WERROR),-Werror)
OPT ?= -O2 -g
san := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
CPPFLAGS += -Iinclude -Ilib -I.
CFLAGS += -std=gnu11 $(OPT) $(WARN) $(san) -fvisibility=hidden -fPIC -pthread
LDFLAGS += $(san) -pthread
LDLIBS += -lsodium -ldl -lm

lib_src := $(sort $(wildcard lib/*/*.c))
lib_obj := $(lib_src:%.c=$B/%.o)
bench_obj := $(patsubst %.c,$B/%.o,$(sort $(wildcard bench/*.c)))
unit_src := $(sort $(wildcard test/unit/t_*.c))
unit_bin := $(unit_src:%.c=$B/%)

all: $B/libwreath.so.0 $B/libwreath.a $(if $(bench_obj),$B/wreath)

$B/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

Q := $(if $(V),,@)

# SIMD lives in files named for it; the rest must run on any processor.  The
# bits of a result may not depend on what a compiler contracts to an FMA.
$B/lib/reduce/%.o: CFLAGS += -ffp-contract=off
ifneq ($(findstring x86_64,$(shell $(CC) -dumpmachine)),)
$B/lib/reduce/avx2.o: CFLAGS += -mavx2 -mf16c -mfma
$B/lib/reduce/avx512.o: CFLAGS += -mavx512f -mavx512bw -mavx512dq -mavx512vl \
	-mf16c
endif

# Unit tests reach the rooms' doors, so they link the objects themselves.
$B/lib.a: $(lib_obj)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$B/test/unit/%: $B/test/unit/%.o $B/lib.a
	$(Q)$(CC) $(LDFLAGS) $^ -lcmocka $(LDLIBS) -o $@

unit: $(unit_bin)

clean:
	rm -rf build build-*

.PHONY: all unit clean
.DELETE_ON_ERROR:
.SECONDARY:
-include $(lib_obj:.o=.d) $(bench_obj:.o=.d) $(unit_bin:=.d)
