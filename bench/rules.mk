# Measurements: a program for each source here, which takes what it needs of the command.
BENCH := $(patsubst bench/%.c,$(B)/bench/%,$(sort $(wildcard bench/*.c)))
ifneq ($(LEVELDB),yes)
BENCH := $(filter-out %/speed_leveldb,$(BENCH))
endif
ifneq ($(GUMBO),yes)
BENCH := $(filter-out %/html_pages,$(BENCH))
endif
$(B)/bench/%: bench/%.c $(B)/release/jobs.a $(B)/release/libbloomery.a
	@mkdir -p $(@D)
	$(CC) $(BASE) $(LIBRARY_FLAGS) $(CPPFLAGS) $(CFLAGS) -O3 $(LDFLAGS) $(filter %.c %.o,$^) $(filter %.a,$^) -pthread \
	    $(BENCH_LIBS) $(ALL_LIBS) -lm -o $@
$(B)/bench/speed_one: BENCH_LIBS = -march=native # as bloomery/inline.h asks of its users
$(B)/bench/speed_leveldb: $(LEVELDB_SRC)
$(B)/bench/speed_leveldb: BENCH_LIBS = -Iadapters/leveldb -lleveldb
-include $(BENCH:=.d)

# BENCH_OPTIONS go to bloomery bench: --items 100M, --threads 2.
BENCH_OPTIONS =
.PHONY: bench
bench: all $(BENCH) ## measurements, with BENCH_OPTIONS
	@bench/run $(B) $(BENCH_OPTIONS)
