# The module for Redis and Valkey; its interface is declared here, so nothing of theirs is needed.
REDIS_SRC := $(sort $(wildcard adapters/redis/*.c))
$(eval $(call module,bloomery.so,$(REDIS_SRC)))
ADAPTERS += $(B)/bloomery.so
$(call installs,$(B)/bloomery.so,$(LIBDIR)/bloomery)

# For a server that runs with the sanitizers' library before all others: tests/test_redis_sanitized.py.
$(B)/asan/bloomery.so: $(REDIS_SRC:%.c=$(B)/asan/%.o) $(B)/asan/libbase.a $(B)/asan/libbloomery.a
	$(call say,LINK,$@)
	$(Q)$(CLANG) $(SAN) $(ASAN) $(LDFLAGS) -shared -pthread -Wl,-Bsymbolic,--exclude-libs,ALL $^ -lm -o $@
-include $(REDIS_SRC:%.c=$(B)/asan/%.d)
