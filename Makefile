# bloomery: see README.md. No configure step; everything is built in build/.
#
#   make            library, command, man pages, completion
#   make help       all targets, from the ## behind each of them
#
# CC, CFLAGS, CPPFLAGS, LDFLAGS, PREFIX, LIBDIR, STRIP, WERROR=-Werror and V=1 may be given; what they
# concern is then built anew, as it is when a library was installed since.
#
# This file knows how a program, a loadable module and a variant are made. What there is to be made
# stands in a rules.mk beside its sources.

MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.SECONDARY:
.DELETE_ON_ERROR:
SHELL = /bin/bash
.PHONY: all
all:

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
comma   := ,

# The version lives in bloomery.h alone.
part     = $(shell sed -n 's/^.define BLY_VERSION_$(1) //p' include/bloomery.h)
MAJOR   := $(call part,MAJOR)
MINOR   := $(call part,MINOR)
VERSION := $(MAJOR).$(MINOR).$(call part,PATCH)
# Programs run with every library of one soname: the major version, and before 1.0 the minor one too.
SONAME   = libbloomery.so.$(MAJOR)$(if $(filter 0,$(MAJOR)),.$(MINOR))

include tools/pages.mk

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

# A library that may be missing; pkg-config is asked, or the compiler where there is no pkg-config.
#   $(call library,NAME,PKG-CONFIG'S NAME,HEADER,LIBRARIES,DEBIAN'S PACKAGE)
# sets NAME to yes if it is there, and NAME_LIBS to what it is linked with. LIBRARY_FLAGS has -DBLY_NAME
# for what looks at it, and where the headers are.
LIBRARY_FLAGS := $(shell pkg-config --cflags zlib libzstd 2>/dev/null)
define library
$(1)_HEADER := $(3)
$(1)_PACKAGE := $(5)
$(1) := $$(or $$(shell pkg-config --exists $(2) 2>/dev/null && echo yes),$$(call finds,$(3)))
ifeq ($$($(1)),yes)
LIBRARY_FLAGS += -DBLY_$(1) \
    $$(patsubst -I%,-isystem %,$$(shell pkg-config --cflags-only-I $(2) 2>/dev/null))
$(1)_LIBS := $$(shell pkg-config --libs $(2) 2>/dev/null || echo $(4))
endif
endef
$(eval $(call library,LZMA,liblzma,lzma.h,-llzma,liblzma-dev))
$(eval $(call library,BZIP2,bzip2,bzlib.h,-lbz2,libbz2-dev))
# The command is linked with these; what a program of its own needs stands in a rules.mk.
BASE_LIBS := $(shell pkg-config --libs zlib libzstd 2>/dev/null || echo -lz -lzstd) $(LZMA_LIBS) $(BZIP2_LIBS)

# ------------------------------------------------------------------ hardening

# What makes a mistake in the code harder to use, where the compiler has it for this machine; before
# CFLAGS, so that -fno-stack-protector there has the last word. _FORTIFY_SOURCE wants an optimising
# compiler, and who gives a level of it gets that. docs/performance.md says what it costs.
takes       = $(shell $(CC) -Werror $(1) -S -x c /dev/null -o /dev/null 2>/dev/null && echo $(1))
FORTIFY     = $(if $(filter-out -O0,$(filter -O%,$(CFLAGS))),$(if $(findstring \
                  _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARDEN     := $(call takes,-fstack-protector-strong) $(call takes,-fcf-protection) \
              $(call takes,-mbranch-protection=standard) $(FORTIFY)
HARDEN_LINK = -Wl,-z,relro,-z,now

# --------------------------------------------------------- what there is to do

BASE       = -std=c11 $(WARN) $(WERROR) -Iinclude -Isrc -I. -pthread -MMD -MP
LIB_SRC   := $(sort $(wildcard src/*/*.c))
KIT_SRC   := $(sort $(wildcard base/*.c))
TEST_SRC  := $(sort $(wildcard tests/test_*.c))
UNITS     := $(TEST_SRC:tests/%.c=%)
# The rooms of the command, below main(): docs/architecture.md.
ROOMS      = base report io wire chord apps workbench cli
PARTS     := $(sort $(filter-out cli/main.c %_bpf.c,$(foreach r,$(ROOMS),$(wildcard $(r)/*.c $(r)/*/*.c $(r)/*/*/*.c))))
JOB_TESTS := $(shell grep -lE '^.include "(($(subst $() ,|,$(filter-out base,$(ROOMS))))/|[a-z]+_check.h)' $(TEST_SRC))

# Lists that the rules.mk add to.
COMMANDS  := bloomery
ADAPTERS  :=
SKIPS     :=
INSTALLED :=

# A program of the command: bloomery-NAME, which `bloomery` runs for the commands that are its own.
#   $(call program,NAME,COMMANDS,FOLDERS,LIBRARIES WITHOUT WHICH THERE IS NONE,OTHERS)
# It is linked from the rows of its commands (cli/cmd_*.c), all of its folders, and what these need of
# everything else.
define program
PROGRAM_NEEDS += $(4)
bloomery-$(1)_SRC := $(2:%=cli/cmd_%.c) $$(filter-out %_bpf.c,$(foreach f,$(3),$$(wildcard $(f)/*.c $(f)/*/*.c)))
bloomery-$(1)_LIBS := $$(foreach l,$(4) $(5),$$($$(l)_LIBS))
ifeq ($$(strip $$(foreach l,$(4),$$(if $$($$(l)),,$$(l)))),)
COMMANDS += bloomery-$(1)
else
$$(call skips,bloomery-$(1): no headers of $$(foreach l,$(4),$$(if $$($$(l)),,$$($$(l)_PACKAGE))))
endif
endef

# What other programs load: build/FILE, from SOURCES, objects and archives of BESIDE, with LIBRARIES.
#   $(call module,FILE,SOURCES,BESIDE,LIBRARIES)
define module
$(B)/$(1): $(2:%.c=$(B)/release/%.o) $(3) $(B)/release/libbase.a $(B)/release/libbloomery.a
	$$(call say,LINK,$$@)
	$(Q)$(CC) $(CFLAGS) $(HARDEN_LINK) $(LDFLAGS) -shared -pthread -Wl,-Bsymbolic,--exclude-libs,ALL $$^ \
	    $(4) -lm -o $$@
-include $(2:%.c=$(B)/release/%.d)
endef

# What cannot be made here is said once, by `all`: $(call skips,WHAT: WHY)
skips = $(eval SKIPS += echo '  SKIP  $(1)';)
# A file that make install puts somewhere: $(call installs,FILES,FOLDER)
installs = $(eval INSTALLED += $(foreach f,$(1),$(f):$(2)/$(notdir $(f))))

# Everything can be compiled in these ways, see below. Rules of jobs may have prerequisites for each.
VARIANTS = release plain clang asan counted tsan msan coverage
include $(wildcard apps/*/rules.mk)

# A source is left out where a header that it includes is not installed, by itself or through one of ours.
MISSING := $(sort $(foreach l,$(PROGRAM_NEEDS),$(if $($(l)),,$($(l)_HEADER))))
ifneq ($(MISSING),)
PARTS   := $(filter-out $(shell tools/users $(MISSING)),$(PARTS))
endif
ROWS    := $(filter-out cli/main.c,$(wildcard cli/*.c))
bloomery_SRC := $(filter $(PARTS),$(ROWS))

# ------------------------------------------------------------------- variants

# What something is built with, kept in a file that it depends on: it is built anew when that has changed,
# as when a library was installed since. The file is written only when it differs. `make install` leaves it
# alone: it often comes through sudo, without the flags that the build was given.
FORCE:
.PHONY: FORCE
WITH    = '$(subst ','\'',$(strip $(USES)))'
stamp   = @$(if $(filter install,$(MAKECMDGOALS)),test -e $@ ||) { mkdir -p $(@D); \
    printf '%s\n' $(WITH) | cmp -s - $@ || printf '%s\n' $(WITH) > $@; }

# A variant is everything compiled one way:
#   $(call variant,NAME,COMPILER,FLAGS,LINK FLAGS)
# gives libbloomery, bloomery and its programs, jobs.a and tests/test_* in build/NAME. Only what is outside
# of src/ sees other libraries, so a new one does not rebuild the library.
#
# jobs.a has all parts of the command. Whoever uses some of them is linked with it, and the linker takes
# what is needed: no list says which object needs which. Those of the release have no hooks for tests, so
# that they serve the plain tests, too.
#
# Disk: the tests share one libbloomery.so, where each with a copy of its own would take 15 MB under a
# sanitizer; archives are lists of the objects beside them, but for the one that is installed. Tests look
# inside, so nothing is hidden in their library, and the compiler is told that nothing will be replaced.
jobs = $(B)/$(if $(filter plain,$(1)),release,$(1))/jobs.a
pic = -fPIC $(if $(filter-out release,$(1)),-fno-semantic-interposition)
define variant
LINK.$(1) = $(2) $(3) $(4) $(LDFLAGS)
$(B)/$(1)/flags: USES = $(filter-out ccache,$(2)) $(CPPFLAGS) $(3) $(4) $(LDFLAGS)
$(B)/$(1)/packages: USES = $(LIBRARY_FLAGS) $(COMMANDS) $(BASE_LIBS) $(if $(XDP),BPF)
$(B)/$(1)/flags $(B)/$(1)/packages: FORCE
	$$(stamp)
$(B)/$(1)/%.o: %.c $(B)/$(1)/flags
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)
	$(Q)$(2) $(BASE) $$(if $$(filter src/%,$$<),,$(LIBRARY_FLAGS)) $(CPPFLAGS) $(3) $(call pic,$(1)) \
	    $$(MORE) -c $$< -o $$@
$(patsubst %.c,$(B)/$(1)/%.o,$(PARTS) cli/main.c): $(B)/$(1)/packages
$(B)/$(1)/libbloomery.a: $(LIB_SRC:%.c=$(B)/$(1)/%.o)
	@rm -f $$@
	$(Q)$(AR) rcs $(if $(filter-out release,$(1)),--thin) $$@ $$^
$(B)/$(1)/libbase.a: $(KIT_SRC:%.c=$(B)/$(1)/%.o)
	@rm -f $$@
	$(Q)$(AR) rcs --thin $$@ $$^
$(B)/$(1)/libbloomery.so: $(LIB_SRC:%.c=$(B)/$(1)/%.o)
	$$(call say,LINK,$$@)
	$(Q)$(2) $(3) $(4) $(LDFLAGS) -shared -pthread -Wl,-soname,$$(@F),-Bsymbolic $$^ -lm -o $$@
$(B)/$(1)/jobs.a: $(PARTS:%.c=$(B)/$(1)/%.o)
	@rm -f $$@
	$(Q)$(AR) rcs --thin $$@ $$^
$(foreach c,$(COMMANDS),$(call command,$(1),$(c)))
$(foreach m,$(filter-out bloomery,$(COMMANDS)),$(B)/$(1)/bloomery: | $(B)/$(1)/$(m)$(newline))
# A test may ask for link flags of its own, in a first line /* LDFLAGS: ... */. They are there to put
# something between the library's objects, so that such a test holds them itself.
$(JOB_TESTS:%.c=$(B)/$(1)/%): $(call jobs,$(1))
$(B)/$(1)/tests/test_%: $(B)/$(1)/tests/test_%.o $(B)/$(1)/tests/support.o $(B)/$(1)/libbase.a \
        $(B)/$(1)/libbloomery.a $(B)/$(1)/libbloomery.so
	$$(call say,LINK,$$@)
	$(Q)own=$$$$(sed -n '1s,^/\* LDFLAGS: \(.*\) \*/$$$$,\1,p' tests/test_$$*.c); \
	$(2) $(3) $(4) $(LDFLAGS) -pthread $$(filter %.o %/jobs.a %/libbase.a,$$^) \
	    $(B)/$(1)/libbloomery.$$$$([ "$$$$own" ] && echo a || echo so) -Wl,-rpath,'$$$$ORIGIN/..' \
	    $$$$own $$(if $$(filter %/jobs.a,$$^),$$(ALL_LIBS)) -lcmocka -lm -o $$@
-include $(patsubst %.c,$(B)/$(1)/%.d,$(LIB_SRC) $(PARTS) cli/main.c $(TEST_SRC) tests/support.c)
endef
define command # VARIANT PROGRAM
$(B)/$(1)/$(2): $(patsubst %.c,$(B)/$(1)/%.o,cli/main.c $($(2)_SRC)) $(B)/$(1)/jobs.a $(B)/$(1)/libbloomery.a
	$$(call say,LINK,$$@)
	$(Q)$$(LINK.$(1)) -pie -pthread $$^ $($(2)_LIBS) $(BASE_LIBS) -lm -o $$@

endef
define newline


endef
ALL_LIBS = -Wl,--as-needed $(sort $(foreach c,$(COMMANDS),$($(c)_LIBS))) $(BASE_LIBS)

# Reports of a sanitizer name lines; variables would double the size of a program. Nothing is forced to be
# inlined: where every copy is checked again, vicounting.c alone takes a minute to compile instead of two
# seconds.
SAN   = -O1 -gline-tables-only -fno-omit-frame-pointer -DBLY_TESTING -Dalways_inline=__unused__
NO_G  = $(filter-out -g%,$(CFLAGS))
ASAN  = -fsanitize=address$(comma)undefined
$(eval $(call variant,release,$(CC),$(HARDEN) $(CFLAGS) -fvisibility=hidden,$(HARDEN_LINK)))
$(eval $(call variant,plain,$(CC),$(HARDEN) $(CFLAGS) -DBLY_TESTING,))
$(eval $(call variant,clang,$(CLANG),$(NO_G) -DBLY_TESTING,))
$(eval $(call variant,asan,$(CLANG),$(SAN) $(ASAN) -fno-sanitize-recover=undefined,))
# What fuzzers look into counts what they reach and tells them every comparison. That takes four times as
# long, so the tests do without.
$(eval $(call variant,counted,$(CLANG),$(SAN) $(ASAN)$(comma)fuzzer-no-link -fno-sanitize-recover=undefined,))
$(eval $(call variant,tsan,$(CLANG),$(SAN) -fsanitize=thread,))
# Finds memory that is read before it is written, and must be told what other libraries have written:
# msan_known.c.
$(eval $(call variant,msan,$(CLANG),$(SAN) -fsanitize=memory,))
$(COMMANDS:%=$(B)/msan/%) $(UNITS:%=$(B)/msan/tests/%): $(B)/msan/tests/msan_known.o
# An assertion that cannot fail is no branch: NDEBUG.
$(eval $(call variant,coverage,$(CLANG),-O1 -gline-tables-only -DBLY_TESTING -DNDEBUG \
    -fprofile-instr-generate -fcoverage-mapping,))

# ------------------------------------------------------------- what is there

$(B)/libbloomery.a $(COMMANDS:%=$(B)/%): $(B)/%: $(B)/release/%
	$(Q)ln -f $< $@
$(B)/bloomery: | $(patsubst %,$(B)/%,$(filter-out bloomery,$(COMMANDS)))

$(B)/libbloomery.so: $(LIB_SRC:%.c=$(B)/release/%.o) src/libbloomery.map
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(HARDEN_LINK) $(LDFLAGS) -shared -pthread -Wl,-soname,$(SONAME) \
	    -Wl,--version-script=src/libbloomery.map $(filter %.o,$^) -lm \
	    -o $(B)/libbloomery.so.$(VERSION)
	@ln -sf libbloomery.so.$(VERSION) $(B)/$(SONAME)
	@ln -sf libbloomery.so.$(VERSION) $@

MAN = $(B)/man/.done
$(MAN): $(B)/bloomery
	@rm -rf $(@D) && mkdir -p $(@D)
	$(call say,MAN,$(@D))
	$(Q)$(B)/bloomery help --man > $(@D)/bloomery.1
	$(Q)for c in $$($(B)/bloomery help --list); do \
	    $(B)/bloomery help --man $$c > $(@D)/bloomery-$$c.1 || exit 1; done
	@touch $@
# The scripts by what their shells want them to be called.
COMPLETION = $(addprefix $(B)/completion/,bloomery.bash _bloomery.zsh bloomery.fish)
$(COMPLETION): $(B)/bloomery
	@mkdir -p $(@D)
	$(Q)$(B)/bloomery help --completion $(patsubst .%,%,$(suffix $@)) > $@

include $(wildcard adapters/*/rules.mk bindings/*/rules.mk web/rules.mk)
include fuzz/rules.mk bench/rules.mk tests/rules.mk tools/rules.mk

.PHONY: help lib adapters
EVERYTHING = lib $(B)/bloomery adapters python $(MAN) $(COMPLETION)
all: $(EVERYTHING) ## library, command, man pages, completion: what plain make does
adapters: $(ADAPTERS) ## what other programs load, as far as they are here
	@$(SKIPS)
lib: $(B)/libbloomery.a $(B)/libbloomery.so ## the library alone
# What may be made: every target with a ## behind it. A test wants one behind each.
help: ## this list
	@awk -F ':.*## ' '/^[a-z_.-]+:.*## / { printf "  make %-22s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# -------------------------------------------------------------------- install

# Programs find a new library only after ldconfig has seen it; those who give DESTDIR make a package, which
# sees to that where it is unpacked.
#
# What is installed has no debug information, which is five times the size of the rest. STRIP= leaves it in:
# for those who package, whose tools move it into packages of their own. DuckDB reads what stands behind
# the last section, which strip would take away.
STRIP    = strip
LDCONFIG = $(if $(DESTDIR),:,if [ "$$(id -u)" = 0 ]; then PATH="$$PATH:/usr/sbin:/sbin" ldconfig || :; fi)
SHARE    = $(PREFIX)/share
LIBEXEC  = $(PREFIX)/libexec/bloomery

$(call installs,$(B)/bloomery,$(PREFIX)/bin)
$(call installs,$(patsubst %,$(B)/%,$(filter-out bloomery,$(COMMANDS))),$(LIBEXEC))
$(call installs,include/bloomery.h,$(PREFIX)/include)
$(call installs,$(wildcard include/bloomery/*.h),$(PREFIX)/include/bloomery)
$(call installs,$(B)/libbloomery.a $(B)/libbloomery.so.$(VERSION),$(LIBDIR))
$(call installs,adapters/dnsdist/bloomery.lua,$(SHARE)/bloomery)
INSTALLED += $(B)/completion/bloomery.bash:$(SHARE)/bash-completion/completions/bloomery \
    $(B)/completion/_bloomery.zsh:$(SHARE)/zsh/site-functions/_bloomery \
    $(B)/completion/bloomery.fish:$(SHARE)/fish/vendor_completions.d/bloomery.fish

from     = $(firstword $(subst :, ,$(1)))
place    = $(DESTDIR)$(lastword $(subst :, ,$(1)))
RUNS     = $(PREFIX)/bin/% $(LIBEXEC)/% %.so %.so.$(VERSION) %.duckdb_extension
mode     = $(if $(filter $(RUNS),$(1)),755,644)
STRIPPED = $(filter-out %_extension,$(filter $(DESTDIR)$(PREFIX)/bin/% $(DESTDIR)$(LIBEXEC)/% %.so %.so.$(VERSION),\
    $(foreach i,$(INSTALLED),$(call place,$(i)))))
define install_one
install -D -m $(call mode,$(lastword $(subst :, ,$(1)))) $(call from,$(1)) $(call place,$(1))
	
endef
.PHONY: install uninstall
install: all ## DESTDIR= PREFIX=/usr/local STRIP=strip; what was built, with whatever flags
	$(foreach i,$(INSTALLED),$(call install_one,$(i)))
	ln -sf libbloomery.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf libbloomery.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libbloomery.so
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(SHARE)/man/man1
	sed -e 's,@PREFIX@,$(PREFIX),g; s,@LIBDIR@,$(LIBDIR),g' -e 's,@VERSION@,$(VERSION),g' \
	    tools/bloomery.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/bloomery.pc
	install -m 644 $(B)/man/*.1 $(DESTDIR)$(SHARE)/man/man1/
	$(install_pages)
	$(if $(wildcard $(B)/web/play.wasm),install -d $(DESTDIR)$(SHARE)/bloomery/web && \
	    install -m 644 $(B)/web/* $(DESTDIR)$(SHARE)/bloomery/web/)
	$(if $(wildcard $(B)/site/index.html),install -d $(DESTDIR)$(SHARE)/bloomery/handbook && \
	    cp -r $(B)/site/. $(DESTDIR)$(SHARE)/bloomery/handbook/)
	$(if $(STRIP),$(STRIP) --strip-unneeded $(STRIPPED))
	$(Q)$(LDCONFIG)

uninstall: ## take away what install brought
	rm -f $(foreach i,$(INSTALLED),$(call place,$(i))) $(DESTDIR)$(LIBDIR)/libbloomery.* \
	    $(DESTDIR)$(SHARE)/bloomery/web/* $(DESTDIR)$(LIBDIR)/pkgconfig/bloomery.pc \
	    $(DESTDIR)$(SHARE)/man/man1/bloomery.1 $(DESTDIR)$(SHARE)/man/man1/bloomery-*.1
	rm -rf $(DESTDIR)$(SHARE)/bloomery/handbook
	$(uninstall_pages)
	$(Q)$(LDCONFIG)

# ------------------------------------------------------------------ front door

# The tools install what is missing and then call make again, so that this file only ever runs where the
# compilers exist.
.PHONY: setup demo test test-quick core clean
setup: ## install what the tests need, on Debian; make test does it by itself
	@tools/setup test

demo: ## on a fresh Debian: install what is missing, build, and show it
	@tools/setup demo
	@$(MAKE) --no-print-directory -j2 all
	@tools/demo $(B)/bloomery

# TESTS names groups of tools/run-tests. Those of the core need the compiler, cmocka and pytest, and nothing
# else is installed or built for them.
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

compile_commands.json: Makefile ## what editors want to know of each file
	@tools/compile-commands > $@

clean: ## remove all that was built
	rm -rf $(B) compile_commands.json
