# Every fuzzer twice: to search, in build/fuzzer; and to read its corpus again in make test, in
# build/replay, which looks into the tests' own objects. What they look into is linked once for all of them.
FUZZ_SRC := $(sort $(wildcard fuzz/fuzz_*.c))
FUZZERS  := $(FUZZ_SRC:fuzz/%.c=%)
$(FUZZ_SRC:%.c=$(B)/counted/%.o): $(B)/counted/packages
FUZZ = $(Q)$(CLANG) $(SAN) $(ASAN)
define fuzzers # FOLDER VARIANT
$(B)/$(1)/libtarget.so: $(patsubst %.c,$(B)/$(2)/%.o,$(PARTS) $(LIB_SRC))
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)
	$(FUZZ) $(LDFLAGS) -shared -pthread -Wl,-soname,$$(@F),-Bsymbolic $$^ $(ALL_LIBS) -lm -o $$@
$(B)/$(1)/fuzz_%: $(B)/counted/fuzz/fuzz_%.o $(B)/$(1)/libtarget.so
	$$(call say,LINK,$$@)
	$(FUZZ)$(comma)fuzzer $(LDFLAGS) -pthread $$(filter %.o %.so,$$^) -Wl,-rpath,'$$$$ORIGIN' $(ALL_LIBS) \
	    -lm -o $$@
# Those of the adapters are linked with them.
$(B)/$(1)/fuzz_redis_load: $(REDIS_SRC:%.c=$(B)/$(2)/%.o)
$(B)/$(1)/fuzz_javascript: $(patsubst %.c,$(B)/$(2)/%.o,$(wildcard bindings/wasm/*.c))
# The small module's C, with its own parts in place of the library's.
$(B)/$(1)/lean/%.o: %.c $(B)/$(2)/flags
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)
	$(Q)$(CLANG) $(BASE) $(CPPFLAGS) $(SAN) $(ASAN) $$(if $$(filter fuzzer,$(1)),-fsanitize=fuzzer-no-link) \
	    -Wno-unused-function $(WASM_SMALL) -c $$< -o $$@
$(B)/$(1)/lean/libbloomery.a: $(patsubst %.c,$(B)/$(2)/%.o,$(filter-out $(WASM_LEAN) $(WASM_LEFT_OUT),$(LIB_SRC)))
	@mkdir -p $$(@D)
	@rm -f $$@
	$(Q)$(AR) rcs --thin $$@ $$^
$(B)/$(1)/fuzz_javascript_small: $(B)/counted/fuzz/fuzz_javascript_small.o \
        $(WASM_LEAN:%.c=$(B)/$(1)/lean/%.o) $(B)/$(1)/lean/libbloomery.a
	$$(call say,LINK,$$@)
	$(FUZZ)$(comma)fuzzer $(LDFLAGS) -pthread $$(filter %.o %.a,$$^) -lm -o $$@
-include $(WASM_LEAN:%.c=$(B)/$(1)/lean/%.d)
endef
$(eval $(call fuzzers,fuzzer,counted))
$(eval $(call fuzzers,replay,asan))
-include $(FUZZ_SRC:%.c=$(B)/counted/%.d)

# Every fuzzer for FUZZ_SECONDS; fuzz-night repeats that until FUZZ_HOURS are over, or Ctrl-C. Corpora and
# what was found stay in build/fuzz.
FUZZ_SECONDS = 600
FUZZ_HOURS   = 8
.PHONY: fuzz fuzz-night
fuzz: $(FUZZERS:%=$(B)/fuzzer/%) ## every fuzzer for FUZZ_SECONDS=600
	@tools/fuzz $(B) $(FUZZ_SECONDS) 0
fuzz-night: $(FUZZERS:%=$(B)/fuzzer/%) ## the same again and again for FUZZ_HOURS=8, or until Ctrl-C
	@tools/fuzz $(B) $(FUZZ_SECONDS) $(FUZZ_HOURS)
