# The filter policy for LevelDB: an archive that programs are linked with, and its header.
LEVELDB := $(call finds,leveldb/c.h)
LEVELDB_SRC := $(sort $(wildcard adapters/leveldb/*.c))
ifeq ($(LEVELDB),yes)
$(B)/libbloomery_leveldb.a: $(LEVELDB_SRC:%.c=$(B)/release/%.o)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) rcs $@ $^
-include $(LEVELDB_SRC:%.c=$(B)/release/%.d)
ADAPTERS += $(B)/libbloomery_leveldb.a
$(call installs,$(B)/libbloomery_leveldb.a,$(LIBDIR))
$(call installs,adapters/leveldb/bloomery_leveldb.h,$(PREFIX)/include)
else
$(call skips,libbloomery_leveldb.a: no headers of LevelDB here (libleveldb-dev))
endif
