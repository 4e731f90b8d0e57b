# The extension for DuckDB, of which nothing is needed to build it. What strips it would take the footer
# away, so it is linked without names.
$(eval $(call module,release/bloomery_duckdb.so,$(sort $(wildcard adapters/duckdb/*.c adapters/sql/*.c)),,-s))
$(B)/bloomery.duckdb_extension: $(B)/release/bloomery_duckdb.so tools/duckdb-footer
	$(call say,FOOT,$@)
	$(Q)tools/duckdb-footer $< $$($(CC) -dumpmachine) $(VERSION) $@
ADAPTERS += $(B)/bloomery.duckdb_extension
$(call installs,$(B)/bloomery.duckdb_extension,$(LIBDIR)/bloomery)
