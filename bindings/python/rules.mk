# A package of one extension module, which has the library inside: build/python is a folder for PYTHONPATH. The tables
# of Python want pointers to functions as pointers to objects, which pedants do not allow. The variant with sanitizers
# takes every lock, as a free-threaded interpreter would have it (gate.h).
# Any headers from 3.11 on, since the extension uses the stable ABI of that version alone.
PYTHON_INCLUDE := $(patsubst %/Python.h,%,$(firstword $(wildcard /usr/include/python3*/Python.h)))
PYTHON := $(if $(PYTHON_INCLUDE),$(B)/python/.done)
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

.PHONY: python wheel
PYTHON_SKIP = @echo "  SKIP  the Python package: no headers of Python here (python3-dev)"
python: $(PYTHON) ## the Python package, in build/python
	$(if $(PYTHON),,$(PYTHON_SKIP))
wheel: $(PYTHON) ## the Python package as a wheel, in build/
	$(if $(PYTHON),$(Q)STRIP="$(STRIP)" tools/wheel $(B)/python $(VERSION) $(B),$(PYTHON_SKIP))
