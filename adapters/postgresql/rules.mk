# The extension for PostgreSQL, which says itself where its headers are and where extensions belong. The
# server finds functions by their names, so these are not hidden. Its headers are written in GNU C.
PG_CONFIG = pg_config
PG_INCLUDE := $(shell $(PG_CONFIG) --includedir-server 2>/dev/null)
ifneq ($(if $(PG_INCLUDE),$(wildcard $(PG_INCLUDE)/postgres.h)),)
$(B)/release/adapters/postgresql/%.o: adapters/postgresql/%.c $(B)/release/flags
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(BASE) -std=gnu11 -Wno-pedantic -D_GNU_SOURCE -isystem $(PG_INCLUDE) $(CPPFLAGS) $(HARDEN) \
	    $(CFLAGS) -fPIC -c $< -o $@
$(eval $(call module,bloomery_postgresql.so,$(sort $(wildcard adapters/postgresql/*.c adapters/sql/*.c))))
ADAPTERS += $(B)/bloomery_postgresql.so

# It knows of no other folders than its own: with a PREFIX that is not the system's, its files are left
# below that.
PG_OWN      = $(filter /usr /usr/local,$(PREFIX))
PG_LIBDIR   = $(if $(PG_OWN),$(shell $(PG_CONFIG) --pkglibdir),$(LIBDIR)/postgresql)
PG_SHAREDIR = $(if $(PG_OWN),$(shell $(PG_CONFIG) --sharedir),$(PREFIX)/share/postgresql)
$(call installs,$(B)/bloomery_postgresql.so,$(PG_LIBDIR))
PG_SQL     := $(wildcard adapters/postgresql/bloomery.control adapters/postgresql/bloomery--*.sql)
$(call installs,$(PG_SQL),$(PG_SHAREDIR)/extension)
else
$(call skips,bloomery_postgresql.so: no headers of PostgreSQL here (postgresql-server-dev-all))
endif
