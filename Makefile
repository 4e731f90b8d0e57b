# bloomery: see README.md. No configure step; everything is built in build/.
#
#   make            library, command, man pages, completion
#   make help       all targets, from the ## behind each of them below
#
# CC, CFLAGS, CPPFLAGS, LDFLAGS, PREFIX, LIBDIR, STRIP, WERROR=-Werror and V=1 may be given; what they concern is
# then built anew, as it is when a library was installed since.

MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.SECONDARY:
.DELETE_ON_ERROR:
SHELL = /bin/bash

# ------------------------------------------------------------------- settings

CC       = gcc
CLANG    = clang
CXX      = g++
AR       = ar
PREFIX   = /usr/local
LIBDIR   = $(PREFIX)/lib
# CFLAGS, CPPFLAGS and LDFLAGS are the user's, from the command line or, as Debian gives them, from the
# environment.
CFLAGS  ?= -O2 -g
WARN     = -Wall -Wextra -Wpedantic -Wconversion -Wshadow
WERROR   =
B        = build
# Commands are shown as a word and a file; V=1 shows them whole.
Q        = $(if $(V),,@)
say      = @$(if $(V),:,printf '  %-5s %s\n' "$(1)" "$(2)")

# The version lives in bloomery.h alone.
part     = $(shell sed -n 's/^.define BLY_VERSION_$(1) //p' include/bloomery.h)
MAJOR   := $(call part,MAJOR)
MINOR   := $(call part,MINOR)
VERSION := $(MAJOR).$(MINOR).$(call part,PATCH)
# Programs run with every library of one soname: the major version, and before 1.0 the minor one too.
SONAME   = libbloomery.so.$(MAJOR)$(if $(filter 0,$(MAJOR)),.$(MINOR))

# ------------------------------------------------------------------ libraries

# Whether the compiler finds these headers. (Not by a piped '#include': in $(shell) versions of make
# disagree about the number sign, and the answer was always yes.)
finds = $(shell $(CC) $(CPPFLAGS) -E $(addprefix -include ,$(1)) -x c /dev/null >/dev/null 2>&1 && echo yes)

# What nothing goes without: header and Debian's package. Missing ones are named before anything is
# compiled; targets that install what is missing, or build nothing, do not ask.
REQUIRED = stdio.h=libc6-dev xxhash.h=libxxhash-dev zlib.h=zlib1g-dev zstd.h=libzstd-dev
header   = $(firstword $(subst =, ,$(1)))
package  = $(lastword $(subst =, ,$(1)))
UNASKING = help demo test check coverage errors msan clean uninstall setup format dist deb
ifneq ($(filter-out $(UNASKING),$(or $(MAKECMDGOALS),all)),)
ifeq ($(shell $(CC) --version 2>/dev/null),)
$(error there is no $(CC); on Debian: apt-get install gcc libc6-dev)
endif
ifneq ($(call finds,$(foreach r,$(REQUIRED),$(call header,$(r)))),yes)
LACKING := $(foreach r,$(REQUIRED),$(if $(call finds,$(call header,$(r))),,$(r)))
$(error missing: $(foreach r,$(LACKING),$(call header,$(r))); on Debian: apt-get install \
$(foreach r,$(LACKING),$(call package,$(r))))
endif
endif

PKG_CFLAGS := $(shell pkg-config --cflags zlib libzstd 2>/dev/null)
PKG_LIBS   := $(shell pkg-config --libs zlib libzstd 2>/dev/null || echo -lz -lzstd)

# A library that the command can do without: without it, what needs it says so. pkg-config is asked, or
# the compiler where there is no pkg-config.
#   $(call optional,NAME,PKG-CONFIG'S NAME,HEADER,LIBRARIES)
# sets NAME to yes and adds -DBLY_NAME, if it is there. No libraries: loaded when needed (io/late.h).
define optional
$(1) := $$(or $$(shell pkg-config --exists $(2) 2>/dev/null && echo yes),$$(call finds,$(3)))
ifeq ($$($(1)),yes)
PKG_CFLAGS += -DBLY_$(1) $$(patsubst -I%,-isystem %,$$(shell pkg-config --cflags-only-I $(2) 2>/dev/null))
PKG_LIBS   += $(if $(4),$$(shell pkg-config --libs $(2) 2>/dev/null || echo $(4)))
endif
endef
$(eval $(call optional,HIREDIS,hiredis,hiredis/hiredis.h,-lhiredis))
$(eval $(call optional,SNAPPY,snappy,snappy-c.h,-lsnappy))
$(eval $(call optional,LZMA,liblzma,lzma.h,-llzma))
$(eval $(call optional,BZIP2,bzip2,bzlib.h,-lbz2))
$(eval $(call optional,CURL,libcurl,curl/curl.h))
$(eval $(call optional,MICROHTTPD,libmicrohttpd,microhttpd.h))
$(eval $(call optional,LIBEDIT,libedit,histedit.h))
$(eval $(call optional,SODIUM,libsodium,sodium.h))
$(eval $(call optional,PCAP,libpcap,pcap/pcap.h))
# The program for the kernel is compiled by clang, for the kernel's machine, and carried by the command as numbers.
XDP := $(shell $(CLANG) -target bpf -c -x c /dev/null -o /dev/null 2>/dev/null && command -v objcopy >/dev/null && echo yes)
XDP_CFLAGS := $(if $(XDP),-DBLY_XDP='"xdp_block.inc"' -I$(B)/xdp)
SQLITE := $(or $(shell pkg-config --exists sqlite3 2>/dev/null && echo yes),$(call finds,sqlite3ext.h))
# PostgreSQL says itself where its headers are and where extensions belong.
PG_CONFIG = pg_config
PG_INCLUDE := $(shell $(PG_CONFIG) --includedir-server 2>/dev/null)
POSTGRESQL := $(if $(PG_INCLUDE),$(wildcard $(PG_INCLUDE)/postgres.h))
LEVELDB := $(call finds,leveldb/c.h)
# Python's headers; any from 3.11 on, since the extension uses the stable ABI of that version alone.
PYTHON_INCLUDE := $(patsubst %/Python.h,%,$(firstword $(wildcard /usr/include/python3*/Python.h)))
PAM := $(or $(shell pkg-config --exists pam 2>/dev/null && echo yes),$(call finds,security/pam_modules.h))
HTTP_SERVER := wire/http.c io/late_microhttpd.c apps/passwords/passwords_serve.c apps/digest/digest_serve.c apps/digest/digest_server.c \
               apps/digest/keeper.c apps/web/web_serve.c
WITHOUT  := $(if $(HIREDIS),,$(filter-out apps/redis/redis_report.c,$(wildcard apps/redis/*.c))) $(if $(CURL),,apps/digest/fetch.c apps/digest/late_curl.c) \
            $(if $(MICROHTTPD),,$(HTTP_SERVER)) $(if $(SODIUM),,io/late_sodium.c $(filter-out %/seal_report.c,$(wildcard apps/seal/*.c))) \
            $(if $(PCAP),,apps/traffic/capture.c apps/traffic/flows.c apps/traffic/count.c apps/traffic/block.c apps/traffic/block_check.c apps/traffic/scan_capture.c apps/traffic/digest_verb.c apps/traffic/trace_verb.c apps/traffic/queue_replay.c) $(if $(and $(CURL),$(MICROHTTPD)),,apps/digest/relay.c)

# ------------------------------------------------------------------ hardening

# What makes a mistake in the code harder to use, where the compiler has it for this machine; before CFLAGS,
# so that -fno-stack-protector there has the last word. _FORTIFY_SOURCE wants an optimising compiler, and
# who gives a level of it gets that. docs/performance.md says what it costs.
takes       = $(shell $(CC) -Werror $(1) -S -x c /dev/null -o /dev/null 2>/dev/null && echo $(1))
FORTIFY     = $(if $(filter-out -O0,$(filter -O%,$(CFLAGS))),$(if $(findstring \
                  _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARDEN     := $(call takes,-fstack-protector-strong) $(call takes,-fcf-protection) \
              $(call takes,-mbranch-protection=standard) $(FORTIFY)
HARDEN_LINK = -Wl,-z,relro,-z,now

# -------------------------------------------------------------------- sources

BASE     = -std=c11 $(WARN) $(WERROR) -Iinclude -Isrc -I. -pthread -MMD -MP
LIB_SRC  := $(sort $(wildcard src/*/*.c))
KIT_SRC  := $(sort $(wildcard base/*.c))
IO_SRC   := $(filter-out $(WITHOUT),$(wildcard report/*.c io/*.c wire/*.c))
APP_SRC  := $(sort $(KIT_SRC) $(IO_SRC) $(filter-out $(WITHOUT),$(wildcard chord/*.c apps/*/*.c apps/net/*/*.c workbench/*.c workbench/*/*.c)))
CLI_SRC  := $(sort $(wildcard cli/*.c)) $(APP_SRC)
TEST_SRC := $(sort $(wildcard tests/test_*.c))
JOB_TESTS := $(shell grep -lE '^.include "(apps|chord|cli|io|report|wire|workbench)/' $(TEST_SRC))
UNITS    := $(TEST_SRC:tests/%.c=%)
FUZZ_SRC := $(sort $(wildcard fuzz/fuzz_*.c))
FUZZERS  := $(FUZZ_SRC:fuzz/%.c=%)
BENCH    := $(patsubst bench/%.c,$(B)/bench/%,$(filter-out $(if $(LEVELDB),,bench/speed_leveldb.c),$(sort $(wildcard bench/*.c))))

MAN       = $(B)/man/.done
# The scripts by what their shells want them to be called.
COMPLETION = $(addprefix $(B)/completion/,bloomery.bash _bloomery.zsh bloomery.fish)

# What there is an engine for here; what not is said once, by `all`.
ADAPTERS := $(B)/bloomery.so $(if $(PAM),$(B)/pam_bloomery.so) $(if $(SQLITE),$(B)/bloomery_sqlite.so) \
            $(if $(POSTGRESQL),$(B)/bloomery_postgresql.so) $(B)/bloomery.duckdb_extension
PYTHON := $(if $(PYTHON_INCLUDE),$(B)/python/.done)
# And what other programs are linked with, and its headers.
ADAPTER_LIBS := $(if $(LEVELDB),$(B)/libbloomery_leveldb.a)
ADAPTER_HEADERS := $(if $(LEVELDB),adapters/leveldb/bloomery_leveldb.h)

.PHONY: all help lib demo test test-quick core test-full soak ring-check faults errors msan check redis-sanitized coverage bench figures figures-check fuzz fuzz-night \
        vectors install uninstall clean format schema tidy setup dist programs adapters python wheel deb deb-check amalgamation musl windows

all: lib $(B)/bloomery adapters python $(MAN) $(COMPLETION) ## library, command, man pages, completion: what plain make does
adapters: $(ADAPTERS) $(ADAPTER_LIBS) ## what other programs load, as far as they are here
	$(if $(PAM),,@echo "  SKIP  pam_bloomery.so: no headers of PAM here (libpam0g-dev)")
	$(if $(SQLITE),,@echo "  SKIP  bloomery_sqlite.so: no headers of SQLite here (libsqlite3-dev)")
	$(if $(POSTGRESQL),,@echo "  SKIP  bloomery_postgresql.so: no headers of PostgreSQL's server here (postgresql-server-dev-all)")
	$(if $(LEVELDB),,@echo "  SKIP  libbloomery_leveldb.a: no headers of LevelDB here (libleveldb-dev)")
python: $(PYTHON) ## the Python package, in build/python
	$(if $(PYTHON),,@echo "  SKIP  the Python package: no headers of Python here (python3-dev)")
lib: $(B)/libbloomery.a $(B)/libbloomery.so ## the library alone
# What may be made: every target with a ## behind it. A test wants one behind each.
help: ## this list
	@awk -F ':.*## ' '/^[a-z_.-]+:.*## / { printf "  make %-22s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# ---------------------------------------------------------------- the library

# What something is built with, kept in a file that it depends on: it is built anew when that has changed,
# as when a library was installed since. The file is written only when it differs. `make install` leaves it
# alone: it often comes through sudo, without the flags that the build was given.
FORCE:
.PHONY: FORCE
WITH    = '$(subst ','\'',$(strip $(USES)))'
stamp   = @$(if $(filter install,$(MAKECMDGOALS)),test -e $@ ||) { mkdir -p $(@D); \
    printf '%s\n' $(WITH) | cmp -s - $@ || printf '%s\n' $(WITH) > $@; }

# A variant is the library and its tests, compiled one way:
#   $(call variant,NAME,COMPILER,FLAGS,LINK FLAGS)
# gives build/NAME/libbloomery.a, build/NAME/bloomery and build/NAME/tests/test_*. Only the command and what
# belongs to it sees other libraries, so a new one does not rebuild the rest.
#
# Disk: the tests share one libbloomery.so, where each with a copy of its own would take 15 MB under a
# sanitizer; archives are lists of the objects beside them, but for the one that is installed. Tests look
# inside, so nothing is hidden in their library, and the compiler is told that nothing will be replaced.
# What a test of jobs is linked with; those of the release have no hooks for tests, so they serve plain tests, too.
jobs = $(B)/$(if $(filter plain,$(1)),release,$(1))/jobs.a
pic = -fPIC $(if $(filter-out release,$(1)),-fno-semantic-interposition)
define variant
$(B)/$(1)/flags: USES = $(filter-out ccache,$(2)) $(CPPFLAGS) $(3) $(4) $(LDFLAGS)
$(B)/$(1)/packages: USES = $(PKG_CFLAGS) $(PKG_LIBS)
$(B)/$(1)/flags $(B)/$(1)/packages: FORCE
	$$(stamp)
$(B)/$(1)/%.o: %.c $(B)/$(1)/flags
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)
	$(Q)$(2) $(BASE) $$(if $$(filter src/%,$$<),,$(PKG_CFLAGS)) $$(if $$(filter %/block_xdp.c,$$<),$(XDP_CFLAGS)) $(CPPFLAGS) $(3) $(call pic,$(1)) -c $$< -o $$@
$(patsubst %.c,$(B)/$(1)/%.o,$(CLI_SRC) $(FUZZ_SRC)): $(B)/$(1)/packages
$(B)/$(1)/apps/traffic/block_xdp.o: $(if $(XDP),$(B)/xdp/xdp_block.inc)
$(B)/$(1)/libbloomery.a: $(LIB_SRC:%.c=$(B)/$(1)/%.o)
	@rm -f $$@
	$(Q)$(AR) rcs $(if $(filter-out release,$(1)),--thin) $$@ $$^
# What the command, tests, bench and adapters share beside the library; each takes of it what it needs.
$(B)/$(1)/libbase.a: $(KIT_SRC:%.c=$(B)/$(1)/%.o)
	@rm -f $$@
	$(Q)$(AR) rcs --thin $$@ $$^
$(B)/$(1)/libbloomery.so: $(LIB_SRC:%.c=$(B)/$(1)/%.o)
	$$(call say,LINK,$$@)
	$(Q)$(2) $(3) $(4) $(LDFLAGS) -shared -pthread -Wl,-soname,$$(@F),-Bsymbolic $$^ -lm -o $$@
# All jobs, for whoever uses some of them: the linker takes what it needs.
$(B)/$(1)/jobs.a: $(APP_SRC:%.c=$(B)/$(1)/%.o)
	@rm -f $$@
	$(Q)$(AR) rcs --thin $$@ $$^
$(B)/$(1)/bloomery: $(CLI_SRC:%.c=$(B)/$(1)/%.o) $(B)/$(1)/libbloomery.a
	$$(call say,LINK,$$@)
	$(Q)$(2) $(3) $(4) $(LDFLAGS) -pie -pthread $$^ $(PKG_LIBS) -lm -ldl -o $$@
# A test may ask for link flags of its own, in a first line /* LDFLAGS: ... */. They are there to put
# something between the library's objects, so that such a test holds them itself.
$(JOB_TESTS:tests/%.c=$(B)/$(1)/tests/%): $(call jobs,$(1))
$(B)/$(1)/tests/test_%: $(B)/$(1)/tests/test_%.o $(B)/$(1)/tests/support.o $(B)/$(1)/libbase.a $(B)/$(1)/libbloomery.a \
        $(B)/$(1)/libbloomery.so
	$$(call say,LINK,$$@)
	$(Q)own=$$$$(sed -n '1s,^/\* LDFLAGS: \(.*\) \*/$$$$,\1,p' tests/test_$$*.c); \
	$(2) $(3) $(4) $(LDFLAGS) -pthread $$(filter %.o %/jobs.a,$$^) $(B)/$(1)/libbase.a \
	    $(B)/$(1)/libbloomery.$$$$([ "$$$$own" ] && echo a || echo so) -Wl,-rpath,'$$$$ORIGIN/..' \
	    $$$$own $$(if $$(filter %/jobs.a,$$^),$(PKG_LIBS)) -lcmocka -lm -o $$@
-include $(LIB_SRC:%.c=$(B)/$(1)/%.d) $(CLI_SRC:%.c=$(B)/$(1)/%.d) \
         $(TEST_SRC:%.c=$(B)/$(1)/%.d) $(B)/$(1)/tests/support.d
endef

comma := ,
# Reports of a sanitizer name lines; variables would double the size of a program. Nothing is forced to be
# inlined: where every copy is checked again, vicounting.c alone takes a minute to compile instead of two seconds.
SAN   = -O1 -gline-tables-only -fno-omit-frame-pointer -DBLY_TESTING -Dalways_inline=__unused__
NO_G  = $(filter-out -g%,$(CFLAGS))
$(eval $(call variant,release,$(CC),$(HARDEN) $(CFLAGS) -fvisibility=hidden,$(HARDEN_LINK)))
$(eval $(call variant,plain,$(CC),$(HARDEN) $(CFLAGS) -DBLY_TESTING,))
$(eval $(call variant,clang,$(CLANG),$(NO_G) -DBLY_TESTING,))
$(eval $(call variant,asan,$(CLANG),$(SAN) -fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined,))
# What fuzzers look into counts what they reach and tells them every comparison. That takes four times as long, so
# the tests do without.
$(eval $(call variant,counted,$(CLANG),$(SAN) -fsanitize=address$(comma)undefined$(comma)fuzzer-no-link \
    -fno-sanitize-recover=undefined,))
$(eval $(call variant,tsan,$(CLANG),$(SAN) -fsanitize=thread,))
# Finds memory that is read before it is written, and must be told what other libraries have written: msan_known.c.
$(eval $(call variant,msan,$(CLANG),$(SAN) -fsanitize=memory,))
$(B)/msan/bloomery $(UNITS:%=$(B)/msan/tests/%): $(B)/msan/tests/msan_known.o
# An assertion that cannot fail is no branch: NDEBUG.
$(eval $(call variant,coverage,$(CLANG),-O1 -gline-tables-only -DBLY_TESTING -DNDEBUG \
    -fprofile-instr-generate -fcoverage-mapping,))

$(B)/libbloomery.a: $(B)/release/libbloomery.a
	$(Q)ln -f $< $@

$(B)/libbloomery.so: $(LIB_SRC:%.c=$(B)/release/%.o) src/libbloomery.map
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(HARDEN_LINK) $(LDFLAGS) -shared -pthread -Wl,-soname,$(SONAME) \
	    -Wl,--version-script=src/libbloomery.map $(filter %.o,$^) -lm \
	    -o $(B)/libbloomery.so.$(VERSION)
	@ln -sf libbloomery.so.$(VERSION) $(B)/$(SONAME)
	@ln -sf libbloomery.so.$(VERSION) $@

$(B)/bloomery: $(B)/release/bloomery
	$(Q)ln -f $< $@

# It has no relocations, so that the section is all there is; instructions have 64 bits.
$(B)/xdp/xdp_block.inc: apps/traffic/kernel/block_bpf.c apps/traffic/xdp_layout.h include/bloomery/inline.h
	@mkdir -p $(@D)
	$(call say,BPF,$@)
	$(Q)$(CLANG) -target bpf -O2 -std=gnu11 -ffreestanding -U__SIZEOF_INT128__ -Iinclude -I. -c $< -o $(@D)/block.o
	$(Q)objcopy -I elf64-little -O binary -j xdp $(@D)/block.o $(@D)/block.bin
	$(Q)od -An -v -tx8 $(@D)/block.bin | sed 's/ \([0-9a-f]\{16\}\)/ UINT64_C(0x\1),/g' > $@

$(MAN): $(B)/bloomery
	@rm -rf $(@D) && mkdir -p $(@D)
	$(call say,MAN,$(@D))
	$(Q)$(B)/bloomery help --man > $(@D)/bloomery.1
	$(Q)for c in $$($(B)/bloomery help --list); do \
	    $(B)/bloomery help --man $$c > $(@D)/bloomery-$$c.1 || exit 1; done
	@touch $@

$(COMPLETION): $(B)/bloomery
	@mkdir -p $(@D)
	$(Q)$(B)/bloomery help --completion $(patsubst .%,%,$(suffix $@)) > $@

# ------------------------------------------------------------------- adapters

# Each is built where its engine can be used; none needs more than libc here.
REDIS_SRC := $(sort $(wildcard adapters/redis/*.c))
$(B)/bloomery.so: $(REDIS_SRC:%.c=$(B)/release/%.o) $(B)/release/libbase.a $(B)/release/libbloomery.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(HARDEN_LINK) $(LDFLAGS) -shared -pthread -Wl,-Bsymbolic,--exclude-libs,ALL $^ \
	    -lm -o $@
-include $(REDIS_SRC:%.c=$(B)/release/%.d)

# For a server that runs with the sanitizers' library before all others: tests/test_redis_sanitized.py.
$(B)/asan/bloomery.so: $(REDIS_SRC:%.c=$(B)/asan/%.o) $(B)/asan/libbase.a $(B)/asan/libbloomery.a
	$(call say,LINK,$@)
	$(Q)$(CLANG) $(SAN) -fsanitize=address,undefined $(LDFLAGS) -shared -pthread -Wl,-Bsymbolic,--exclude-libs,ALL $^ \
	    -lm -o $@
-include $(REDIS_SRC:%.c=$(B)/asan/%.d)

PAM_SRC := $(sort $(wildcard adapters/pam/*.c))
$(B)/pam_bloomery.so: $(PAM_SRC:%.c=$(B)/release/%.o) $(B)/release/jobs.a $(B)/release/libbloomery.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(HARDEN_LINK) $(LDFLAGS) -shared -pthread -Wl,-Bsymbolic,--exclude-libs,ALL $^ \
	    -lpam -lm -o $@
-include $(PAM_SRC:%.c=$(B)/release/%.d)

SQLITE_SRC := $(sort $(wildcard adapters/sqlite/*.c adapters/sql/*.c))
$(B)/bloomery_sqlite.so: $(SQLITE_SRC:%.c=$(B)/release/%.o) $(B)/release/libbase.a $(B)/release/libbloomery.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(HARDEN_LINK) $(LDFLAGS) -shared -pthread -Wl,-Bsymbolic,--exclude-libs,ALL $^ \
	    -lm -o $@
-include $(SQLITE_SRC:%.c=$(B)/release/%.d)

# The server finds functions by their names, so these are not hidden. Its headers are written in GNU C.
POSTGRESQL_SRC := $(sort $(wildcard adapters/postgresql/*.c))
$(B)/release/adapters/postgresql/%.o: adapters/postgresql/%.c $(B)/release/flags
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(BASE) -std=gnu11 -Wno-pedantic -D_GNU_SOURCE -isystem $(PG_INCLUDE) $(CPPFLAGS) $(HARDEN) $(CFLAGS) -fPIC -c $< -o $@
$(B)/bloomery_postgresql.so: $(patsubst %.c,$(B)/release/%.o,$(POSTGRESQL_SRC) $(wildcard adapters/sql/*.c)) $(B)/release/libbase.a $(B)/release/libbloomery.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(HARDEN_LINK) $(LDFLAGS) -shared -pthread -Wl,-Bsymbolic,--exclude-libs,ALL $^ \
	    -lm -o $@
-include $(POSTGRESQL_SRC:%.c=$(B)/release/%.d)

# Needs nothing of DuckDB's to be built. What strips it would take the footer away, so it is linked without names.
DUCKDB_SRC := $(sort $(wildcard adapters/duckdb/*.c))
$(B)/release/bloomery_duckdb.so: $(patsubst %.c,$(B)/release/%.o,$(DUCKDB_SRC) $(wildcard adapters/sql/*.c)) $(B)/release/libbase.a $(B)/release/libbloomery.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(HARDEN_LINK) $(LDFLAGS) -shared -s -pthread -Wl,-Bsymbolic,--exclude-libs,ALL $^ \
	    -lm -ldl -o $@
$(B)/bloomery.duckdb_extension: $(B)/release/bloomery_duckdb.so tools/duckdb-footer
	$(call say,FOOT,$@)
	$(Q)tools/duckdb-footer $< $$($(CC) -dumpmachine) $(VERSION) $@
-include $(DUCKDB_SRC:%.c=$(B)/release/%.d)

LEVELDB_SRC := $(sort $(wildcard adapters/leveldb/*.c))
$(B)/libbloomery_leveldb.a: $(LEVELDB_SRC:%.c=$(B)/release/%.o)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) rcs $@ $^
-include $(LEVELDB_SRC:%.c=$(B)/release/%.d)

# ----------------------------------------------------------------------- cuda

# Filters on NVIDIA's devices: code for Hopper, and what drivers compile for every device from Turing on.
NVCC := $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA_ARCH  = -gencode arch=compute_75,code=compute_75 -gencode arch=compute_90,code=sm_90
CUDA_FLAGS = -std=c++17 -O3 $(CUDA_ARCH) -Iinclude -Iadapters/cuda -diag-suppress 177 -Xcompiler -fPIC,-Wall,-fvisibility=hidden
CUDA_SRC  := $(wildcard adapters/cuda/*.h include/*.h include/*/*.h)
.PHONY: cuda cuda-test
cuda: $(if $(NVCC),$(B)/libbloomery_cuda.so $(B)/bloomery-bench-gpu $(B)/cuda/device_test) ## filters on a GPU: libbloomery_cuda and its bench, where nvcc is
	$(if $(NVCC),,@echo "  SKIP  libbloomery_cuda.so: no nvcc here (CUDA 12 or 13)")
$(B)/cuda/%.o: adapters/cuda/%.cu $(CUDA_SRC)
	@mkdir -p $(@D)
	$(call say,NVCC,$@)
	$(Q)$(NVCC) $(CUDA_FLAGS) -c $< -o $@
$(B)/libbloomery_cuda.so: $(B)/cuda/filter.o $(B)/libbloomery.so
	$(call say,LINK,$@)
	$(Q)$(NVCC) -shared $< -L$(B) -lbloomery -o $@
$(B)/bloomery-bench-gpu: $(B)/cuda/bench.o
$(B)/cuda/device_test: $(B)/cuda/device_test.o
$(B)/bloomery-bench-gpu $(B)/cuda/device_test: $(B)/cuda/filter.o $(B)/libbloomery.a
	$(call say,LINK,$@)
	$(Q)$(NVCC) $(filter %.o %.a,$^) -o $@
cuda-test: cuda ## the device against the processor, for CUDA_KEYS=1000000 keys; wants a device
	$(if $(NVCC),$(B)/cuda/device_test $(CUDA_KEYS))

# --------------------------------------------------------------------- python

# A package of one extension module, which has the library inside: build/python is a folder for PYTHONPATH. The tables
# of Python want pointers to functions as pointers to objects, which pedants do not allow. The variant with sanitizers
# takes every lock, as a free-threaded interpreter would have it (gate.h).
PYTHON_SRC  := $(sort $(wildcard bindings/python/*.c))
PYTHON_DATA := $(sort $(wildcard bindings/python/bloomery/*))
PYTHON_FLAGS = $(BASE) -std=gnu11 -Wno-pedantic -DPy_LIMITED_API=0x030b0000 -isystem $(PYTHON_INCLUDE) $(CPPFLAGS)
#   $(call extension,VARIANT,FOLDER,COMPILER,FLAGS,LINK FLAGS)
define extension
$(B)/$(1)/bindings/python/%.o: bindings/python/%.c $(B)/$(1)/flags
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)
	$(Q)$(3) $(PYTHON_FLAGS) $(4) -fvisibility=hidden -fPIC -c $$< -o $$@
$(2)/.done: $(PYTHON_SRC:%.c=$(B)/$(1)/%.o) $(B)/$(1)/libbloomery.a $(PYTHON_DATA)
	@mkdir -p $(2)/bloomery
	$$(call say,LINK,$(2))
	$(Q)$(3) $(4) $(5) $(LDFLAGS) -shared -pthread -Wl,-Bsymbolic,--exclude-libs,ALL $$(filter %.o %.a,$$^) -lm \
	    -o $(2)/bloomery/_bloomery.abi3.so
	@cp $(PYTHON_DATA) $(2)/bloomery/
	@touch $$@
-include $(PYTHON_SRC:%.c=$(B)/$(1)/%.d)
endef
$(eval $(call extension,release,$(B)/python,$(CC),$(HARDEN) $(CFLAGS),$(HARDEN_LINK)))
$(eval $(call extension,asan,$(B)/asan/python,$(CLANG),$(SAN) -DGATE_ALWAYS -fsanitize=address$(comma)undefined \
    -fno-sanitize-recover=undefined,-shared-libasan))

wheel: $(PYTHON) ## the Python package as a wheel, in build/
	$(if $(PYTHON),$(Q)STRIP="$(STRIP)" tools/wheel $(B)/python $(VERSION) $(B),@echo "  SKIP  the wheel: no headers of Python here (python3-dev)")

# -------------------------------------------------------------------- install

# Where the scripts of $(COMPLETION) belong, each in the place of its shell.
COMPLETED = bash-completion/completions/bloomery zsh/site-functions/_bloomery fish/vendor_completions.d/bloomery.fish

# Programs find a new library only after ldconfig has seen it; those who give DESTDIR make a package, which
# sees to that where it is unpacked.
#
# What is installed has no debug information, which is five times the size of the rest. STRIP= leaves it in: for
# those who package, whose tools move it into packages of their own.
STRIP    = strip
stripped = $(if $(STRIP),$(STRIP) --strip-unneeded $(1))
LDCONFIG = $(if $(DESTDIR),:,if [ "$$(id -u)" = 0 ]; then PATH="$$PATH:/usr/sbin:/sbin" ldconfig || :; fi)

# What is loaded from $(LIBDIR)/bloomery; PostgreSQL has folders of its own, and knows of no others: with a PREFIX
# that is not the system's, its files are left below that.
LOADED   = $(filter-out %_postgresql.so,$(ADAPTERS))
OF_THE_SYSTEM = $(filter /usr /usr/local,$(PREFIX))
PG_LIBDIR   = $(if $(OF_THE_SYSTEM),$(shell $(PG_CONFIG) --pkglibdir),$(LIBDIR)/postgresql)
PG_SHAREDIR = $(if $(OF_THE_SYSTEM),$(shell $(PG_CONFIG) --sharedir),$(PREFIX)/share/postgresql)
PG_FILES    = bloomery.control $(notdir $(sort $(wildcard adapters/postgresql/bloomery--*.sql)))

install: all ## DESTDIR= PREFIX=/usr/local STRIP=strip; what was built, with whatever flags
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR)/pkgconfig \
	    $(DESTDIR)$(LIBDIR)/bloomery $(DESTDIR)$(PREFIX)/share/bloomery \
	    $(DESTDIR)$(PREFIX)/include/bloomery $(DESTDIR)$(PREFIX)/share/man/man1 \
	    $(addprefix $(DESTDIR)$(PREFIX)/share/,$(dir $(COMPLETED)))
	install -m 755 $(B)/bloomery $(DESTDIR)$(PREFIX)/bin/
	install -m 644 include/bloomery.h $(DESTDIR)$(PREFIX)/include/
	install -m 644 include/bloomery/*.h $(DESTDIR)$(PREFIX)/include/bloomery/
	$(if $(ADAPTER_LIBS),install -m 644 $(ADAPTER_HEADERS) $(DESTDIR)$(PREFIX)/include/)
	install -m 644 $(B)/libbloomery.a $(ADAPTER_LIBS) $(DESTDIR)$(LIBDIR)/
	install -m 755 $(B)/libbloomery.so.$(VERSION) $(DESTDIR)$(LIBDIR)/
	install -m 644 adapters/dnsdist/bloomery.lua $(DESTDIR)$(PREFIX)/share/bloomery/
	install -m 755 $(LOADED) $(DESTDIR)$(LIBDIR)/bloomery/
	$(if $(POSTGRESQL),install -d $(DESTDIR)$(PG_LIBDIR) $(DESTDIR)$(PG_SHAREDIR)/extension)
	$(if $(POSTGRESQL),install -m 755 $(B)/bloomery_postgresql.so $(DESTDIR)$(PG_LIBDIR)/)
	$(if $(POSTGRESQL),install -m 644 $(PG_FILES:%=adapters/postgresql/%) $(DESTDIR)$(PG_SHAREDIR)/extension/)
	ln -sf libbloomery.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf libbloomery.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libbloomery.so
	sed -e 's,@PREFIX@,$(PREFIX),g; s,@LIBDIR@,$(LIBDIR),g' \
	    -e 's,@VERSION@,$(VERSION),g' tools/bloomery.pc.in \
	    > $(DESTDIR)$(LIBDIR)/pkgconfig/bloomery.pc
	$(if $(wildcard $(B)/web/play.wasm),install -d $(DESTDIR)$(PREFIX)/share/bloomery/web && install -m 644 $(B)/web/* $(DESTDIR)$(PREFIX)/share/bloomery/web/)
	$(if $(wildcard $(B)/site/index.html),install -d $(DESTDIR)$(PREFIX)/share/bloomery/handbook && cp -r $(B)/site/. $(DESTDIR)$(PREFIX)/share/bloomery/handbook/ && chmod -R u=rwX,go=rX $(DESTDIR)$(PREFIX)/share/bloomery/handbook)
	$(call stripped,$(DESTDIR)$(PREFIX)/bin/bloomery $(DESTDIR)$(LIBDIR)/libbloomery.so.$(VERSION) \
	    $(patsubst $(B)/%,$(DESTDIR)$(LIBDIR)/bloomery/%,$(filter %.so,$(LOADED))) \
	    $(if $(POSTGRESQL),$(DESTDIR)$(PG_LIBDIR)/bloomery_postgresql.so))
	install -m 644 $(B)/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	$(foreach n,1 2 3,install -m 644 $(word $(n),$(COMPLETION)) $(DESTDIR)$(PREFIX)/share/$(word $(n),$(COMPLETED)) &&) :
	$(Q)$(LDCONFIG)

uninstall: ## take away what install brought
	rm -f $(DESTDIR)$(PREFIX)/bin/bloomery \
	    $(DESTDIR)$(PREFIX)/include/bloomery.h \
	    $(DESTDIR)$(PREFIX)/include/bloomery/*.h \
	    $(ADAPTER_HEADERS:adapters/leveldb/%=$(DESTDIR)$(PREFIX)/include/%) \
	    $(ADAPTER_LIBS:$(B)/%=$(DESTDIR)$(LIBDIR)/%) \
	    $(DESTDIR)$(LIBDIR)/libbloomery.* \
	    $(DESTDIR)$(PREFIX)/share/bloomery/bloomery.lua $(DESTDIR)$(PREFIX)/share/bloomery/web/* \
	    $(LOADED:$(B)/%=$(DESTDIR)$(LIBDIR)/bloomery/%) \
	    $(if $(POSTGRESQL),$(DESTDIR)$(PG_LIBDIR)/bloomery_postgresql.so \
	        $(PG_FILES:%=$(DESTDIR)$(PG_SHAREDIR)/extension/%)) \
	    $(DESTDIR)$(LIBDIR)/pkgconfig/bloomery.pc \
	    $(DESTDIR)$(PREFIX)/share/man/man1/bloomery.1 \
	    $(DESTDIR)$(PREFIX)/share/man/man1/bloomery-*.1 \
	    $(addprefix $(DESTDIR)$(PREFIX)/share/,$(COMPLETED))
	rm -rf $(DESTDIR)$(PREFIX)/share/bloomery/handbook
	$(Q)$(LDCONFIG)

# ------------------------------------------------------------- WebAssembly

# The library for JavaScript: clang, wasi-libc and wasm-ld make it, wasm-opt (binaryen) makes it smaller where it
# is there. Four modules: the most used kinds or all, with SIMD or without; and one for the playground. All but the
# loops under asking are compiled for few bytes; nothing is forced to be inlined there, which alone saves half. In the
# module with the most used kinds bindings/wasm/lean/ takes the place of larger parts of the library.
WASM := $(shell $(CLANG) --target=wasm32-wasi -c -x c /dev/null -include stdlib.h -o /dev/null 2>/dev/null && command -v wasm-ld >/dev/null && echo yes)
WASM_COMMON = blocked classic
WASM_LEAN = $(wildcard bindings/wasm/*.c bindings/wasm/lean/*.c) src/kinds/table.c src/core/hash.c $(WASM_COMMON:%=src/kinds/%.c)
WASM_LEFT_OUT = src/api/builder.c src/codec/codec.c src/core/case.c src/core/number.c src/core/siphash.c src/core/status.c src/format/compact.c src/format/mapped.c
WASM_BASE = --target=wasm32-wasi -std=c11 -Wall -Wextra -Wno-unused-function $(WERROR) -ffunction-sections -fdata-sections -fvisibility=hidden -DNDEBUG -mbulk-memory -mnontrapping-fptoint -msign-ext -ftls-model=local-exec \
    -D_WASI_EMULATED_MMAN -Ibindings/wasm/machine -isystem $(B)/cross_include -Iinclude -Isrc -I. -MMD -MP
WASM_HOT = src/engine/wasm_lines.c src/kinds/blocked.c src/engine/hash_many.c
WASM_FOR = $(if $(filter $(WASM_HOT),$1),-O2,$(if $(filter src/core/hash.c,$1),$2,-Oz -Dalways_inline=__unused__ -mllvm -unroll-count=1))
# Sources of the system's that WebAssembly has nothing of.
WASM_LIB := $(filter-out src/core/machine.c src/format/attributes.c src/format/replace.c src/kinds/table.c $(wildcard src/engine/x86_*.c src/engine/arm_*.c src/node/*.c),$(LIB_SRC))
WASM_SRC := $(sort $(wildcard bindings/wasm/*.c bindings/wasm/machine/*.c))
PLAY_SRC := $(sort $(wildcard web/*.c)) workbench/expression.c workbench/explain.c workbench/ring_model.c \
    chord/chord.c chord/chord_walk.c chord/chord_join.c
define wasm
$(B)/wasm/$(1)/flags: USES = $(filter-out ccache,$(CLANG)) $(WASM_BASE) $(2) $(WASM_HOT) $(value WASM_FOR) $(WASM_LEAN)
$(B)/wasm/$(1)/flags: FORCE
	$$(stamp)
$(B)/wasm/$(1)/%.o: %.c $(B)/wasm/$(1)/flags $(B)/cross_include/xxhash.h $(B)/cross_include/xxh3.h
	@mkdir -p $$(@D)
	$$(call say,WASM,$$@)
	$(Q)$(CLANG) $(WASM_BASE) $(2) $$(call WASM_FOR,$$<,-Os) $$(if $$(findstring /machine/,$$<),-fno-builtin,-flto) -c $$< -o $$@
$(B)/wasm/$(1)/lean/%.o: %.c $(B)/wasm/$(1)/flags $(B)/cross_include/xxhash.h $(B)/cross_include/xxh3.h
	@mkdir -p $$(@D)
	$$(call say,WASM,$$@)
	$(Q)$(CLANG) $(WASM_BASE) $(2) $$(call WASM_FOR,$$<,-Oz) -flto -DBLY_LEAN '-DBLY_KINDS(X)=$$(foreach k,$(WASM_COMMON),X($$k))' -c $$< -o $$@
$(B)/wasm/$(1)/lean/libbloomery.a: $(patsubst %.c,$(B)/wasm/$(1)/%.o,$(filter-out $(WASM_LEAN) $(WASM_LEFT_OUT),$(WASM_LIB)))
	@mkdir -p $$(@D)
	@rm -f $$@
	$(Q)$(WASM_AR) rcs $$@ $$^
$(B)/wasm/$(1)/libbloomery.a: $(WASM_LIB:%.c=$(B)/wasm/$(1)/%.o)
	@rm -f $$@
	$(Q)$(WASM_AR) rcs $$@ $$^
$(B)/js/common$(3).wasm: $(patsubst %.c,$(B)/wasm/$(1)/%.o,$(WASM_LEAN:%=lean/%) $(wildcard bindings/wasm/machine/*.c)) $(B)/wasm/$(1)/lean/libbloomery.a
$(B)/js/all$(3).wasm: $(B)/wasm/$(1)/src/kinds/table.o $(WASM_SRC:%.c=$(B)/wasm/$(1)/%.o) $(B)/wasm/$(1)/libbloomery.a
-include $(patsubst %.c,$(B)/wasm/$(1)/%.d,$(WASM_LIB) $(WASM_SRC) $(PLAY_SRC) src/kinds/table.c $(WASM_LEAN:%=lean/%))
endef
WASM_AR = $(or $(shell command -v llvm-ar || command -v llvm-ar-14),ar)
$(eval $(call wasm,simd,-msimd128,))
$(eval $(call wasm,plain,,-plain))
$(B)/web/play.wasm: $(B)/wasm/plain/src/kinds/table.o $(patsubst %.c,$(B)/wasm/plain/%.o,$(WASM_SRC) $(PLAY_SRC)) $(B)/wasm/plain/libbloomery.a
WASM_MODULES = $(addprefix $(B)/js/,common.wasm common-plain.wasm all.wasm all-plain.wasm)
$(WASM_MODULES) $(B)/web/play.wasm: bindings/wasm/machine/absent.txt
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CLANG) --target=wasm32-wasi -mexec-model=reactor -Wl,--strip-all -Wl,--gc-sections -Wl,-z,stack-size=262144 -Wl,--stack-first -Wl,--export=__stack_pointer -Wl,-mllvm,-unroll-count=1 -Wl,-mllvm,-inline-threshold=-20 \
	    -Wl,--allow-undefined-file=bindings/wasm/machine/absent.txt $(filter %.o %.a,$^) -lwasi-emulated-mman -lm -o $@
	$(Q)! command -v wasm-opt >/dev/null || wasm-opt --enable-simd --enable-mutable-globals --enable-bulk-memory --enable-nontrapping-float-to-int --enable-sign-ext --low-memory-unused --strip-producers --flatten --rereloop -Oz -Oz $@ -o $@
JS_FILES = bloomery.js bloomery.d.ts
.PHONY: js web
js: $(if $(WASM),$(WASM_MODULES) $(addprefix $(B)/js/,$(JS_FILES) package.json README.md LICENSE)) ## the npm package bloomery, in build/js: npm pack there makes its tarball
	$(if $(WASM),,@echo "  SKIP  the package for JavaScript: no clang for WebAssembly here (clang lld wasi-libc libclang-rt-14-dev-wasm32)")
$(B)/js/bloomery.d.ts: bindings/wasm/bloomery.d.ts
	@mkdir -p $(@D)
	$(Q)cp $< $@
# esbuild leaves out what only people read, where it is there.
$(B)/js/bloomery.js $(B)/web/bloomery.js: bindings/wasm/bloomery.js
	@mkdir -p $(@D)
	$(Q)if command -v esbuild >/dev/null; then esbuild --log-level=warning --format=esm --minify $< --outfile=$@; else cp $< $@; fi
$(B)/js/package.json: bindings/wasm/package.json include/bloomery.h
	@mkdir -p $(@D)
	$(Q)sed 's/"version": "[^"]*"/"version": "$(VERSION)"/' $< > $@
$(B)/js/README.md: docs/javascript.md
	@mkdir -p $(@D)
	$(Q)cp $< $@
$(B)/js/LICENSE: LICENSE
	@mkdir -p $(@D)
	$(Q)cp $< $@
.PHONY: site
site: web ## the handbook with search, as static files in build/site; bloomery web serves it beside the playground
	@tools/setup site
	$(Q)tools/site $(B)
WEB_FILES := $(filter-out %.c %.h,$(wildcard web/*))
web: $(if $(WASM),$(B)/web/play.wasm $(B)/web/bloomery.js $(WEB_FILES:%=$(B)/%)) ## the playground, as static files in build/web; bloomery web serves it
	$(if $(WASM),,@echo "  SKIP  the playground: no clang for WebAssembly here (clang lld wasi-libc libclang-rt-14-dev-wasm32)")
$(WEB_FILES:%=$(B)/%): $(B)/%: %
	@mkdir -p $(@D)
	$(Q)cp $< $@

# ---------------------------------------------------------------------- tests

# The tools install what is missing and then call make again, so that this
# file only ever runs where the compilers exist.
setup: ## install what the tests need, on Debian; make test does it by itself
	@tools/setup test

demo: ## on a fresh Debian: install what is missing, build, and show it
	@tools/setup demo
	@$(MAKE) --no-print-directory -j2 all
	@tools/demo $(B)/bloomery

# TESTS names groups of tools/run-tests. Those of the core need the compiler, cmocka and pytest, and nothing else is
# installed or built for them.
TESTS =
OF_THE_CORE = $(and $(TESTS),$(if $(filter-out core quick,$(TESTS)),,yes))
test: ## every test there is, at the end what was skipped, and why; TESTS=core: library and command, of few packages
	@tools/setup $(if $(OF_THE_CORE),core,test)
	$(if $(OF_THE_CORE),,@mkdir -p $(B) && tools/captures $(B))
	@$(MAKE) --no-print-directory -j2 $(if $(OF_THE_CORE),core,all programs) WERROR=-Werror
	@tools/run-tests $(B) $(TESTS)
test-quick: ## what may be run every ten minutes: the core without what takes long (two minutes)
	@$(MAKE) --no-print-directory -j2 core WERROR=-Werror
	@tools/run-tests $(B) quick
core: $(B)/bloomery $(UNITS:%=$(B)/plain/tests/%) ## build what TESTS=core runs

FAULTS   = $(addprefix $(B)/tests/,disk_tracer failing_malloc.so jumping_clock.so meanwhile.so no_network.so)
RINGS    = $(B)/tests/ring_clerk $(B)/tests/ring_sim $(B)/tests/jumping_clock.so

# All that tools/run-tests runs.
PROGRAMS = $(UNITS:%=$(B)/plain/tests/%) $(UNITS:%=$(B)/asan/tests/%) \
    $(B)/tsan/tests/test_threads $(B)/asan/bloomery $(B)/asan/bloomery.so $(B)/tsan/bloomery \
    $(FUZZERS:%=$(B)/replay/%) $(FAULTS) $(RINGS) $(if $(PYTHON),$(B)/asan/python/.done)
programs: $(PROGRAMS) cross js web ## build all that the tests run

# Power cuts and failing calls: what runs the command under bad luck, and the
# long form.
$(B)/tests/disk_tracer: tests/disk_tracer.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -std=c11 $(WARN) $(WERROR) $(CFLAGS) $< -o $@
$(B)/tests/%.so: tests/%.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -std=c11 $(WARN) $(WERROR) $(CFLAGS) -fPIC -shared $< -ldl -o $@
faults: all $(FAULTS) ## power cuts and failing calls, the long form (half an hour)
	BLY_FULL=1 BLOOMERY=$(CURDIR)/$(B)/bloomery BLY_BUILD=$(CURDIR)/$(B) /usr/bin/python3 -m pytest \
	    -q -p no:cacheprovider tests/test_power_loss.py tests/test_io_faults.py \
	    tests/test_sync_meanwhile.py

# The error paths of every command: all lines with sanitizers, then those of make test again, where every read of memory
# that was not written is found, too.
VALGRIND = valgrind -q --error-exitcode=99
ERRORS   = BLY_BUILD=$(CURDIR)/$(B) /usr/bin/python3 -m pytest -q -p no:cacheprovider tests/test_error_paths.py
errors: ## error paths of every verb and option with sanitizers, and under valgrind (half an hour)
	@tools/setup errors
	@$(MAKE) --no-print-directory -j2 $(B)/bloomery $(B)/asan/bloomery $(FAULTS)
	BLY_FULL=1 BLOOMERY=$(CURDIR)/$(B)/asan/bloomery $(ERRORS)
	BLY_UNDER='$(VALGRIND)' BLOOMERY=$(CURDIR)/$(B)/bloomery $(ERRORS)

# The library, and those parts of the command that have unit tests.
msan: ## unit tests with the memory sanitizer
	@tools/setup test
	@$(MAKE) --no-print-directory -j2 $(UNITS:%=$(B)/msan/tests/%)
	@tools/run-tests $(B) msan

# Clients of a ring whose members are killed, stopped, cut off and worse, and a judge of what they were told.
# The simulator puts locks that give way, a network and chance of its own in the place of the system's.
$(B)/tests/ring_sim: RING_LINK = $(addprefix -Wl$(comma)--wrap=,pthread_mutex_lock pthread_rwlock_rdlock pthread_rwlock_wrlock \
    call_ask nanosleep getrandom)
$(B)/tests/ring_clerk $(B)/tests/ring_sim: $(B)/tests/%: tests/%.c \
        $(B)/release/jobs.a $(B)/release/libbloomery.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(BASE) $(PKG_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -pthread $^ $(RING_LINK) $(PKG_LIBS) -lm -ldl -o $@
RING_CHECK_SECONDS ?= 1800
ring-check: all $(RINGS) ## 10,000 schedules of names, then faults of ring members under load, all judged (half an hour: RING_CHECK_SECONDS)
	BLOOMERY=$(CURDIR)/$(B)/bloomery BLY_BUILD=$(CURDIR)/$(B) /usr/bin/python3 tests/ring_schedules.py 10000
	BLOOMERY=$(CURDIR)/$(B)/bloomery BLY_BUILD=$(CURDIR)/$(B) /usr/bin/python3 tests/ring_check.py $(RING_CHECK_SECONDS)

# Random commands on two servers that must stay the same: tests/redis_soak.py.
SOAK_SECONDS ?= 3600
soak: all ## random commands, restarts and failovers on two Redis servers (an hour: SOAK_SECONDS)
	BLOOMERY=$(CURDIR)/$(B)/bloomery BLY_BUILD=$(CURDIR)/$(B) /usr/bin/python3 tests/redis_soak.py $(SOAK_SECONDS)

# All tests of the module, in servers with sanitizers; make test has a short form.
redis-sanitized: all $(B)/asan/bloomery.so ## the tests of the Redis module with sanitizers (ten minutes)
	BLY_REDIS_SANITIZED=1 BLOOMERY=$(CURDIR)/$(B)/bloomery BLY_BUILD=$(CURDIR)/$(B) /usr/bin/python3 -m pytest \
	    -q -p no:cacheprovider tests/test_redis*.py

# The long forms: 20,000 random filters of each kind, ten million operations on each, rates up to ten million keys.
test-full: all $(patsubst %,$(B)/plain/tests/%,test_laws test_laws_random test_rates test_chord test_gossip) ## the long forms of laws, rates, rings and queues (three hours)
	BLY_FULL=1 $(B)/plain/tests/test_laws_random
	BLY_FULL=1 $(B)/plain/tests/test_laws 'agrees_with_an_exact_set*'
	BLY_FULL=1 $(B)/plain/tests/test_rates
	BLY_FULL=1 $(B)/plain/tests/test_chord
	BLY_FULL=1 $(B)/plain/tests/test_gossip
	BLY_FULL=1 BLOOMERY=$(CURDIR)/$(B)/bloomery BLY_BUILD=$(CURDIR)/$(B) /usr/bin/python3 -m pytest \
	    -q -p no:cacheprovider tests/test_ring_nodes.py tests/test_queue_wire.py
	@$(MAKE) --no-print-directory figures-check

check: ## the sanitizer runs alone
	@tools/setup test
	@$(MAKE) --no-print-directory -j2 $(UNITS:%=$(B)/asan/tests/%) \
	    $(B)/tsan/tests/test_threads
	@tools/run-tests $(B) sanitizers

# Fails below COVERAGE_FLOOR percent of the branches of src/: what was reached, so that it cannot fall
# unnoticed.
COVERAGE_FLOOR = 95
coverage: ## which branches of src/ no test takes (ten minutes)
	@tools/setup coverage
	@$(MAKE) --no-print-directory -j2 all $(B)/coverage/bloomery \
	    $(UNITS:%=$(B)/coverage/tests/%)
	@tools/coverage $(B) $(COVERAGE_FLOOR)

# Every fuzzer twice: to search, in $(B)/fuzzer; and to read its corpus again in make test, in $(B)/replay, which
# looks into the tests' own objects. What they look into is linked once for all of them.
define fuzzers # FOLDER VARIANT
$(B)/$(1)/libtarget.so: $(patsubst %.c,$(B)/$(2)/%.o,$(APP_SRC) $(LIB_SRC))
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)
	$(Q)$(CLANG) $(SAN) -fsanitize=address,undefined $(LDFLAGS) -shared -pthread -Wl,-soname,$$(@F),-Bsymbolic \
	    $$^ $(PKG_LIBS) -lm -o $$@
$(B)/$(1)/fuzz_%: $(B)/counted/fuzz/fuzz_%.o $(B)/$(1)/libtarget.so
	$$(call say,LINK,$$@)
	$(Q)$(CLANG) $(SAN) -fsanitize=address,undefined,fuzzer $(LDFLAGS) -pthread \
	    $$(filter %.o %.so,$$^) -Wl,-rpath,'$$$$ORIGIN' $(PKG_LIBS) -lm -o $$@
# Those of the adapters are linked with them.
$(B)/$(1)/fuzz_redis_load: $(REDIS_SRC:%.c=$(B)/$(2)/%.o)
$(B)/$(1)/fuzz_javascript: $(patsubst %.c,$(B)/$(2)/%.o,$(wildcard bindings/wasm/*.c))
# The small module's C, with its own parts in place of the library's.
$(B)/$(1)/lean/%.o: %.c $(B)/$(2)/flags
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)
	$(Q)$(CLANG) $(BASE) $(CPPFLAGS) $(SAN) -fsanitize=address,undefined $$(if $$(filter fuzzer,$(1)),-fsanitize=fuzzer-no-link) -Wno-unused-function \
	    -DBLY_LEAN '-DBLY_KINDS(X)=$$(foreach k,$(WASM_COMMON),X($$k))' -c $$< -o $$@
$(B)/$(1)/lean/libbloomery.a: $(patsubst %.c,$(B)/$(2)/%.o,$(filter-out $(WASM_LEAN) $(WASM_LEFT_OUT),$(LIB_SRC)))
	@mkdir -p $$(@D)
	@rm -f $$@
	$(Q)$(AR) rcs --thin $$@ $$^
$(B)/$(1)/fuzz_javascript_small: $(B)/counted/fuzz/fuzz_javascript_small.o $(WASM_LEAN:%.c=$(B)/$(1)/lean/%.o) $(B)/$(1)/lean/libbloomery.a
	$$(call say,LINK,$$@)
	$(Q)$(CLANG) $(SAN) -fsanitize=address,undefined,fuzzer $(LDFLAGS) -pthread $$(filter %.o %.a,$$^) -lm -o $$@
-include $(WASM_LEAN:%.c=$(B)/$(1)/lean/%.d)
endef
$(eval $(call fuzzers,fuzzer,counted))
$(eval $(call fuzzers,replay,asan))
-include $(FUZZ_SRC:%.c=$(B)/counted/%.d)

# Every figure in full, with its page: what is committed comes from here.
figures: $(B)/bloomery ## redraw docs/figures (a minute)
	$(B)/bloomery figures --full --out docs/figures

# To the byte, but for those that measure the machine: of these, names and labels. make test leaves out the long ones.
figures-check: $(B)/bloomery ## is docs/figures what make figures draws today? (a minute)
	BLY_FULL=1 BLOOMERY=$(CURDIR)/$(B)/bloomery BLY_BUILD=$(CURDIR)/$(B) /usr/bin/python3 -m pytest \
	    -q -p no:cacheprovider tests/test_pictures.py

# What the commands print with --json; the tests hold it against this.
schema: $(B)/bloomery ## write docs/schema.json anew, from the tables of the reports
	$(B)/bloomery help --schema >docs/schema.json

# Every fuzzer for FUZZ_SECONDS; fuzz-night repeats that until FUZZ_HOURS are over, or Ctrl-C. Corpora and what
# was found stay in build/fuzz.
FUZZ_SECONDS = 600
FUZZ_HOURS   = 8
fuzz: $(FUZZERS:%=$(B)/fuzzer/%) ## every fuzzer for FUZZ_SECONDS=600
	@tools/fuzz $(B) $(FUZZ_SECONDS) 0
fuzz-night: $(FUZZERS:%=$(B)/fuzzer/%) ## the same again and again for FUZZ_HOURS=8, or until Ctrl-C
	@tools/fuzz $(B) $(FUZZ_SECONDS) $(FUZZ_HOURS)

# The same golden files on other machines: a program without cmocka, static,
# run by qemu-user. xxHash is a header alone, borrowed from the native system.
# musl is another C library on this machine, and needs no qemu.
CROSS = aarch64 s390x i686 musl
CROSS_CC = $(if $(filter musl,$1),musl-gcc -O0,$1-linux-gnu-gcc -O1)
.PHONY: cross
cross: $(CROSS:%=$(B)/cross/%) ## build the reader of golden files for other machines
# Copied once: several copies at the same time get in each other's way.
$(B)/cross_include/%.h: /usr/include/%.h
	@mkdir -p $(@D)
	@cp $< $@
$(B)/cross/%: tests/golden_reader.c $(LIB_SRC) $(wildcard include/*.h include/*/*.h src/engine/lines*.h tests/each_row.h tests/golden.h) \
    $(B)/cross_include/xxhash.h $(B)/cross_include/xxh3.h
	$(Q)mkdir -p $(@D)
	$(call say,CROSS,$@)
	$(Q)$(call CROSS_CC,$*) -std=c11 -Wall -Wextra $(WERROR) -Iinclude -Isrc \
	    -I$(B)/cross_include -static -s -pthread $(filter %.c,$^) -lm -o $@

# Long forms, each a few minutes: tests/other_libc and tools/windows/build say what they do.
musl: ## the unit tests of the library with musl
	@tools/setup test
	@tests/other_libc $(B)
windows: ## the library for Windows, which reads the golden files under wine
	@tools/setup windows
	@tools/windows/build $(B)

$(B)/tools/make_vectors: tools/make_vectors.c $(B)/plain/libbloomery.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(BASE) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $^ -pthread -lm -o $@

# Writes golden files for kinds that have none; never changes one.
vectors: $(B)/tools/make_vectors ## write golden files for kinds that have none
	$(B)/tools/make_vectors tests/golden

format: ## lay all C out as clang-format does; make test looks
	tools/c-files | xargs clang-format -i

# What clang-tidy finds, by .clang-tidy. TIDY=quick leaves out the analyzer; it follows paths through a function until
# it has seen 20,000 states, where its own bound takes six times as long, and believes xxHash's assertions.
TIDY =
tidy: ## look for mistakes with clang-tidy (minutes); make test does the quick part
	$(Q)set -o pipefail; printf '%s\n' $(LIB_SRC) $(CLI_SRC) $(REDIS_SRC) | \
	    xargs -P$$(nproc) -I{} clang-tidy --quiet $(if $(TIDY),--checks='-clang-analyzer-*') {} -- \
	    -std=c11 -Iinclude -Isrc -I. $(PKG_CFLAGS) -DXXH_DEBUGLEVEL=1 -Xclang -analyzer-config -Xclang max-nodes=20000 2>&1 | { ! grep -v '^[0-9]* warnings\? generated'; }

# What is committed, as a tarball of the same bytes whenever and wherever it is made.
dist: ## build/bloomery-VERSION.tar.gz, from what is committed
	@mkdir -p $(B)
	$(Q)set -o pipefail; git archive --format=tar --prefix=bloomery-$(VERSION)/ HEAD | gzip -9n > $(B)/bloomery-$(VERSION).tar.gz
	$(call say,DIST,$(B)/bloomery-$(VERSION).tar.gz)

# In two files, for those who vendor it.
amalgamation: lib ## build/amalgamation/bloomery.c and .h: the library with the common kinds in two files
	$(Q)tools/amalgamate $(B) $(B)/amalgamation $(KINDS)

# Debian's packages, from what is committed, in a folder of their own: docs/packages.md.
deb: dist ## Debian packages in build/deb, from what is committed (minutes)
	@tools/setup deb
	$(Q)rm -rf $(B)/deb && mkdir -p $(B)/deb && tar -xzf $(B)/bloomery-$(VERSION).tar.gz -C $(B)/deb
	$(Q)unset MAKEFLAGS MFLAGS MAKELEVEL; cd $(B)/deb/bloomery-$(VERSION) && dpkg-buildpackage -b -us -uc -j2 > ../build.log 2>&1 || \
	    { tail -n 30 ../build.log; exit 1; }
	@rm -rf $(B)/deb/bloomery-$(VERSION)
	@ls $(B)/deb/*.deb | sed 's/^/  DEB   /'
deb-check: deb $(B)/bloomery ## lintian on these packages; install, use and remove them in a bare Debian (root)
	@tools/setup deb-check
	BLY_FULL=1 BLY_DEBS=$(CURDIR)/$(B)/deb BLOOMERY=$(CURDIR)/$(B)/bloomery BLY_BUILD=$(CURDIR)/$(B) /usr/bin/python3 -m pytest \
	    -q -p no:cacheprovider -rs tests/test_packages.py

# ---------------------------------------------------------------------- bench

$(B)/bench/%: bench/%.c $(B)/release/jobs.a $(B)/release/libbloomery.a
	@mkdir -p $(@D)
	$(CC) $(BASE) $(PKG_CFLAGS) $(CPPFLAGS) $(CFLAGS) -O3 $(LDFLAGS) $(filter %.c %.o %.a,$^) -pthread -Wl,--as-needed $(PKG_LIBS) -lm $(BENCH_LIBS) -o $@
$(B)/bench/speed_one: BENCH_LIBS = -march=native # as bloomery/inline.h asks of its users
$(B)/bench/speed_leveldb: $(LEVELDB_SRC)
$(B)/bench/speed_leveldb: BENCH_LIBS = -Iadapters/leveldb -lleveldb

-include $(BENCH:=.d)

# BENCH_OPTIONS go to bloomery bench: --items 100M, --threads 2.
BENCH_OPTIONS =
bench: all $(BENCH) ## measurements, with BENCH_OPTIONS
	@bench/run $(B) $(BENCH_OPTIONS)

compile_commands.json: Makefile ## what editors want to know of each file
	@tools/compile-commands > $@

clean: ## remove all that was built
	rm -rf $(B) compile_commands.json
