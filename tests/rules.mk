# What only tests are linked for, and their long forms.
ENV    = BLOOMERY=$(CURDIR)/$(B)/bloomery BLY_BUILD=$(CURDIR)/$(B)
PYTEST = /usr/bin/python3 -m pytest -q -p no:cacheprovider
.PHONY: programs faults errors msan ring-check cluster-test soak redis-sanitized test-full check coverage cross musl windows

FAULTS   = $(addprefix $(B)/tests/,disk_tracer failing_malloc.so jumping_clock.so meanwhile.so no_network.so)
RINGS    = $(B)/tests/ring_clerk $(B)/tests/ring_sim $(B)/tests/jumping_clock.so

# All that tools/run-tests runs.
PROGRAMS = $(UNITS:%=$(B)/plain/tests/%) $(UNITS:%=$(B)/asan/tests/%) \
    $(B)/tsan/tests/test_threads $(COMMANDS:%=$(B)/asan/%) $(B)/asan/bloomery.so $(COMMANDS:%=$(B)/tsan/%) \
    $(FUZZERS:%=$(B)/replay/%) $(FAULTS) $(RINGS) $(if $(PYTHON),$(B)/asan/python/.done)
programs: $(PROGRAMS) cross js web ## build all that the tests run

# Power cuts and failing calls: what runs the command under bad luck, and the
# long form.
$(B)/tests/disk_tracer: tests/disk_tracer.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -std=c11 $(WARN) $(WERROR) $(CFLAGS) $< -o $@
$(B)/tests/%.so: tests/%.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -std=c11 $(WARN) $(WERROR) $(CFLAGS) -fPIC -shared $< -ldl -o $@
faults: all $(FAULTS) ## power cuts and failing calls, the long form (half an hour)
	BLY_FULL=1 $(ENV) $(PYTEST) \
	    tests/test_power_loss.py tests/test_io_faults.py \
	    tests/test_sync_meanwhile.py

# The error paths of every command: all lines with sanitizers, then those of make test again, where every read of memory
# that was not written is found, too.
VALGRIND = valgrind -q --error-exitcode=99
ERRORS   = BLY_BUILD=$(CURDIR)/$(B) $(PYTEST) tests/test_error_paths.py
errors: ## error paths of every verb and option with sanitizers, and under valgrind (half an hour)
	@tools/setup errors
	@$(MAKE) --no-print-directory -j2 $(B)/bloomery $(B)/asan/bloomery $(FAULTS)
	BLY_FULL=1 BLOOMERY=$(CURDIR)/$(B)/asan/bloomery $(ERRORS)
	BLY_UNDER='$(VALGRIND)' BLOOMERY=$(CURDIR)/$(B)/bloomery $(ERRORS)

# The library, and those parts of the command that have unit tests.
msan: ## unit tests with the memory sanitizer
	@tools/setup test
	@$(MAKE) --no-print-directory -j2 $(UNITS:%=$(B)/msan/tests/%)
	@tools/run-tests $(B) msan

# Clients of a ring whose members are killed, stopped, cut off and worse, and a judge of what they were told.
# The simulator puts locks that give way, a network and chance of its own in the place of the system's.
$(B)/tests/ring_sim: RING_LINK = $(addprefix -Wl$(comma)--wrap=,pthread_mutex_lock pthread_rwlock_rdlock \
    pthread_rwlock_wrlock call_ask nanosleep getrandom)
$(B)/tests/ring_clerk $(B)/tests/ring_sim: $(B)/tests/%: tests/%.c $(B)/release/jobs.a $(B)/release/libbloomery.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(BASE) $(LIBRARY_FLAGS) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -pthread $^ $(RING_LINK) $(ALL_LIBS) -lm -o $@
RING_CHECK_SECONDS ?= 1800
ring-check: all $(RINGS) ## 10,000 schedules of names, then faults under load, judged (half an hour: RING_CHECK_SECONDS)
	$(ENV) /usr/bin/python3 tests/ring_schedules.py 10000
	$(ENV) /usr/bin/python3 tests/ring_check.py $(RING_CHECK_SECONDS)

# Near-copies by a Slurm whose tasks and nodes are killed, and by 200 processes.
cluster-test: all ## dedup by 60 tasks of a real Slurm, 60 of them killed, and a node (needs root and slurm-wlm)
	BLY_FULL=1 $(ENV) $(PYTEST) tests/test_split_slurm.py tests/test_dedup_split.py

# Random commands on two servers that must stay the same: tests/redis_soak.py.
SOAK_SECONDS ?= 3600
soak: all ## random commands, restarts and failovers on two Redis servers (an hour: SOAK_SECONDS)
	$(ENV) /usr/bin/python3 tests/redis_soak.py $(SOAK_SECONDS)

# All tests of the module, in servers with sanitizers; make test has a short form.
redis-sanitized: all $(B)/asan/bloomery.so ## the tests of the Redis module with sanitizers (ten minutes)
	BLY_REDIS_SANITIZED=1 $(ENV) $(PYTEST) \
	    tests/test_redis*.py

# The long forms: 20,000 random filters of each kind, ten million operations on each, rates up to ten million keys.
LONG = test_laws test_laws_random test_rates test_chord test_gossip
test-full: all $(LONG:%=$(B)/plain/tests/%) ## the long forms of laws, rates, rings and queues (three hours)
	BLY_FULL=1 $(B)/plain/tests/test_laws_random
	BLY_FULL=1 $(B)/plain/tests/test_laws 'agrees_with_an_exact_set*'
	BLY_FULL=1 $(B)/plain/tests/test_rates
	BLY_FULL=1 $(B)/plain/tests/test_chord
	BLY_FULL=1 $(B)/plain/tests/test_gossip
	BLY_FULL=1 $(ENV) $(PYTEST) \
	    tests/test_ring_nodes.py tests/test_queue_wire.py
	@$(MAKE) --no-print-directory figures-check

check: ## the sanitizer runs alone
	@tools/setup test
	@$(MAKE) --no-print-directory -j2 $(UNITS:%=$(B)/asan/tests/%) \
	    $(B)/tsan/tests/test_threads
	@tools/run-tests $(B) sanitizers

# Fails below COVERAGE_FLOOR percent of the branches of src/: what was reached, so that it cannot fall
# unnoticed.
COVERAGE_FLOOR = 95
coverage: ## which branches of src/ no test takes (ten minutes)
	@tools/setup coverage
	@$(MAKE) --no-print-directory -j2 all $(B)/coverage/bloomery \
	    $(UNITS:%=$(B)/coverage/tests/%)
	@tools/coverage $(B) $(COVERAGE_FLOOR)

# The same golden files on other machines: a program without cmocka, static,
# run by qemu-user. xxHash is a header alone, borrowed from the native system.
# musl is another C library on this machine, and needs no qemu.
CROSS = aarch64 s390x i686 musl
CROSS_CC = $(if $(filter musl,$1),musl-gcc -O0,$1-linux-gnu-gcc -O1)
cross: $(CROSS:%=$(B)/cross/%) ## build the reader of golden files for other machines
# Copied once: several copies at the same time get in each other's way.
$(B)/cross_include/%.h: /usr/include/%.h
	@mkdir -p $(@D)
	@cp $< $@
$(B)/cross/%: tests/golden_reader.c $(LIB_SRC) $(wildcard include/*.h include/*/*.h) \
    $(wildcard src/engine/lines*.h tests/each_row.h tests/golden.h) \
    $(B)/cross_include/xxhash.h $(B)/cross_include/xxh3.h
	$(Q)mkdir -p $(@D)
	$(call say,CROSS,$@)
	$(Q)$(call CROSS_CC,$*) -std=c11 -Wall -Wextra $(WERROR) -Iinclude -Isrc \
	    -I$(B)/cross_include -static -s -pthread $(filter %.c,$^) -lm -o $@

# Long forms, each a few minutes: tests/other_libc and tools/windows/build say what they do.
musl: ## the unit tests of the library with musl
	@tools/setup test
	@tests/other_libc $(B)
windows: ## the library for Windows, which reads the golden files under wine
	@tools/setup windows
	@tools/windows/build $(B)
