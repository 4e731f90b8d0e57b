# The library for JavaScript: clang, wasi-libc and wasm-ld make it, wasm-opt (binaryen) makes it smaller
# where it is there. Four modules: the most used kinds or all, with SIMD or without. All but the loops under
# asking are compiled for few bytes; nothing is forced to be inlined there, which alone saves half. In the
# module with the most used kinds bindings/wasm/lean/ takes the place of larger parts of the library.
WASM := $(shell $(CLANG) --target=wasm32-wasi -c -x c /dev/null -include stdlib.h -o /dev/null \
    2>/dev/null && command -v wasm-ld >/dev/null && echo yes)
WASM_COMMON = blocked classic
WASM_LEAN = $(wildcard bindings/wasm/*.c bindings/wasm/lean/*.c) src/kinds/table.c src/core/hash.c \
    $(WASM_COMMON:%=src/kinds/%.c)
WASM_LEFT_OUT = src/api/builder.c src/codec/codec.c src/format/compact.c src/format/mapped.c \
    $(addprefix src/core/,case.c number.c siphash.c status.c)
# How the sources of that module are compiled, here and for its fuzzer.
WASM_SMALL = -DBLY_LEAN '-DBLY_KINDS(X)=$(foreach k,$(WASM_COMMON),X($k))'
WASM_BASE = --target=wasm32-wasi -std=c11 -Wall -Wextra -Wno-unused-function $(WERROR) \
    -ffunction-sections -fdata-sections -fvisibility=hidden -DNDEBUG -mbulk-memory -mnontrapping-fptoint \
    -msign-ext -ftls-model=local-exec \
    -D_WASI_EMULATED_MMAN -Ibindings/wasm/machine -isystem $(B)/cross_include -Iinclude -Isrc -I. -MMD -MP
WASM_HOT = src/engine/wasm_lines.c src/kinds/blocked.c src/engine/hash_many.c
WASM_FEW = -Oz -Dalways_inline=__unused__ -mllvm -unroll-count=1
WASM_FOR = $(if $(filter $(WASM_HOT),$1),-O2,$(if $(filter src/core/hash.c,$1),$2,$(WASM_FEW)))
# Sources of the system's that WebAssembly has nothing of.
WASM_LIB := $(filter-out src/api/share.c src/core/machine.c src/format/attributes.c src/format/live.c \
    src/format/replace.c src/kinds/table.c \
    $(wildcard src/engine/x86_*.c src/engine/arm_*.c src/engine/planes.c src/sketch/sides.c src/sketch/near*.c \
    src/index/*.c src/node/*.c),$(LIB_SRC))
WASM_SRC := $(sort $(wildcard bindings/wasm/*.c bindings/wasm/machine/*.c))
WASM_HASH := $(B)/cross_include/xxhash.h $(B)/cross_include/xxh3.h
define wasm
$(B)/wasm/$(1)/flags: USES = $(filter-out ccache,$(CLANG)) $(WASM_BASE) $(2) $(WASM_HOT) $(value WASM_FOR) $(WASM_FEW) \
    $(WASM_LEAN)
$(B)/wasm/$(1)/flags: FORCE
	$$(stamp)
$(B)/wasm/$(1)/%.o: %.c $(B)/wasm/$(1)/flags $(WASM_HASH)
	@mkdir -p $$(@D)
	$$(call say,WASM,$$@)
	$(Q)$(CLANG) $(WASM_BASE) $(2) $$(call WASM_FOR,$$<,-Os) \
	    $$(if $$(findstring /machine/,$$<),-fno-builtin,-flto) -c $$< -o $$@
$(B)/wasm/$(1)/lean/%.o: %.c $(B)/wasm/$(1)/flags $(WASM_HASH)
	@mkdir -p $$(@D)
	$$(call say,WASM,$$@)
	$(Q)$(CLANG) $(WASM_BASE) $(2) $$(call WASM_FOR,$$<,-Oz) -flto $(WASM_SMALL) -c $$< -o $$@
$(B)/wasm/$(1)/lean/libbloomery.a: \
    $(patsubst %.c,$(B)/wasm/$(1)/%.o,$(filter-out $(WASM_LEAN) $(WASM_LEFT_OUT),$(WASM_LIB)))
	@mkdir -p $$(@D)
	@rm -f $$@
	$(Q)$(WASM_AR) rcs $$@ $$^
$(B)/wasm/$(1)/libbloomery.a: $(WASM_LIB:%.c=$(B)/wasm/$(1)/%.o)
	@rm -f $$@
	$(Q)$(WASM_AR) rcs $$@ $$^
$(B)/js/common$(3).wasm: $(B)/wasm/$(1)/lean/libbloomery.a \
    $(patsubst %.c,$(B)/wasm/$(1)/%.o,$(WASM_LEAN:%=lean/%) $(wildcard bindings/wasm/machine/*.c))
$(B)/js/all$(3).wasm: $(patsubst %.c,$(B)/wasm/$(1)/%.o,src/kinds/table.c $(WASM_SRC)) \
    $(B)/wasm/$(1)/libbloomery.a
-include $(patsubst %.c,$(B)/wasm/$(1)/%.d,$(WASM_LIB) $(WASM_SRC) src/kinds/table.c $(WASM_LEAN:%=lean/%))
endef
WASM_AR = $(or $(shell command -v llvm-ar || command -v llvm-ar-14),ar)
$(eval $(call wasm,simd,-msimd128,))
$(eval $(call wasm,plain,,-plain))
WASM_MODULES = $(addprefix $(B)/js/,common.wasm common-plain.wasm all.wasm all-plain.wasm)
WASM_LINK = -Wl,--strip-all,--gc-sections,-z,stack-size=262144,--stack-first,--export=__stack_pointer \
    -Wl,-mllvm,-unroll-count=1,-mllvm,-inline-threshold=-20 \
    -Wl,--allow-undefined-file=bindings/wasm/machine/absent.txt
WASM_OPT = $(addprefix --enable-,simd mutable-globals bulk-memory nontrapping-float-to-int sign-ext) \
    --low-memory-unused --strip-producers --flatten --rereloop -Oz -Oz
$(WASM_MODULES) $(B)/web/play.wasm: bindings/wasm/machine/absent.txt
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CLANG) --target=wasm32-wasi -mexec-model=reactor $(WASM_LINK) $(filter %.o %.a,$^) \
	    -lwasi-emulated-mman -lm -o $@
	$(Q)! command -v wasm-opt >/dev/null || wasm-opt $(WASM_OPT) $@ -o $@
JS_FILES = bloomery.js bloomery.d.ts package.json README.md LICENSE
.PHONY: js
js: $(if $(WASM),$(WASM_MODULES) $(JS_FILES:%=$(B)/js/%)) ## the npm package, in build/js, for npm pack
	$(if $(WASM),,@echo "  SKIP  the package for JavaScript: $(WASM_LACKS)")
WASM_LACKS = no clang for WebAssembly here (clang lld wasi-libc libclang-rt-14-dev-wasm32)
# esbuild leaves out what only people read, where it is there.
$(B)/js/bloomery.js $(B)/web/bloomery.js: bindings/wasm/bloomery.js
	@mkdir -p $(@D)
	$(Q)if command -v esbuild >/dev/null; then \
	    esbuild --log-level=warning --format=esm --minify $< --outfile=$@; else cp $< $@; fi
$(B)/js/package.json: bindings/wasm/package.json include/bloomery.h
	@mkdir -p $(@D)
	$(Q)sed 's/"version": "[^"]*"/"version": "$(VERSION)"/' $< > $@
$(B)/js/bloomery.d.ts: bindings/wasm/bloomery.d.ts
$(B)/js/README.md: docs/javascript.md
$(B)/js/LICENSE: LICENSE
$(B)/js/bloomery.d.ts $(B)/js/README.md $(B)/js/LICENSE:
	@mkdir -p $(@D)
	$(Q)cp $< $@
