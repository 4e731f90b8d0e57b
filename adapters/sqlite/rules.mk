# The extension for SQLite.
$(eval $(call library,SQLITE,sqlite3,sqlite3ext.h,,libsqlite3-dev))
ifeq ($(SQLITE),yes)
$(eval $(call module,bloomery_sqlite.so,$(sort $(wildcard adapters/sqlite/*.c adapters/sql/*.c))))
ADAPTERS += $(B)/bloomery_sqlite.so
$(call installs,$(B)/bloomery_sqlite.so,$(LIBDIR)/bloomery)
else
$(call skips,bloomery_sqlite.so: no headers of SQLite here (libsqlite3-dev))
endif
