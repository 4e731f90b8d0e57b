# What is made from the tree beside programs: figures, schemas, golden files, tarballs, packages.
.PHONY: figures figures-check schema vectors format tidy dist amalgamation deb deb-check

# Every figure in full, with its page: what is committed comes from here.
figures: $(B)/bloomery ## redraw docs/figures (a minute)
	$(B)/bloomery figures --full --out docs/figures

# To the byte, but for those that measure the machine: of these, names and labels. make test leaves out the long ones.
figures-check: $(B)/bloomery ## is docs/figures what make figures draws today? (a minute)
	BLY_FULL=1 $(ENV) $(PYTEST) \
	    tests/test_pictures.py

# What the commands print with --json; the tests hold it against this.
schema: $(B)/bloomery ## write docs/schema.json anew, from the tables of the reports
	$(B)/bloomery help --schema >docs/schema.json

$(B)/tools/make_vectors: tools/make_vectors.c $(B)/plain/libbloomery.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(BASE) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $^ -pthread -lm -o $@

# Writes golden files for kinds that have none; never changes one.
vectors: $(B)/tools/make_vectors ## write golden files for kinds that have none
	$(B)/tools/make_vectors tests/golden

format: ## lay all C out as clang-format does; make test looks
	tools/c-files | xargs clang-format -i

# What clang-tidy finds, by .clang-tidy. TIDY=quick leaves out the analyzer; it follows paths through a function until
# it has seen 20,000 states, where its own bound takes six times as long, and believes xxHash's assertions.
TIDY =
tidy: ## look for mistakes with clang-tidy (minutes); make test does the quick part
	$(Q)set -o pipefail; printf '%s\n' $(LIB_SRC) $(PARTS) cli/main.c $(REDIS_SRC) | \
	    xargs -P$$(nproc) -I{} clang-tidy --quiet $(if $(TIDY),--checks='-clang-analyzer-*') {} -- \
	    -std=c11 -Iinclude -Isrc -I. $(LIBRARY_FLAGS) -DXXH_DEBUGLEVEL=1 -Xclang -analyzer-config \
	    -Xclang max-nodes=20000 2>&1 | { ! grep -v '^[0-9]* warnings\? generated'; }

# What is committed, as a tarball of the same bytes whenever and wherever it is made.
DIST = bloomery-$(VERSION)
dist: ## build/bloomery-VERSION.tar.gz, from what is committed
	@mkdir -p $(B)
	$(Q)set -o pipefail; git archive --format=tar --prefix=$(DIST)/ HEAD | gzip -9n > $(B)/$(DIST).tar.gz
	$(call say,DIST,$(B)/$(DIST).tar.gz)

# In two files, for those who vendor it.
amalgamation: lib ## build/amalgamation/bloomery.c and .h: the library with the common kinds in two files
	$(Q)tools/amalgamate $(B) $(B)/amalgamation $(KINDS)

# Debian's packages, from what is committed, in a folder of their own: docs/packages.md.
deb: dist ## Debian packages in build/deb, from what is committed (minutes)
	@tools/setup deb
	$(Q)rm -rf $(B)/deb && mkdir -p $(B)/deb && tar -xzf $(B)/$(DIST).tar.gz -C $(B)/deb
	$(Q)unset MAKEFLAGS MFLAGS MAKELEVEL; cd $(B)/deb/$(DIST) && \
	    dpkg-buildpackage -b -us -uc -j2 > ../build.log 2>&1 || { tail -n 30 ../build.log; exit 1; }
	@rm -rf $(B)/deb/$(DIST)
	@ls $(B)/deb/*.deb | sed 's/^/  DEB   /'
deb-check: deb $(B)/bloomery ## lintian on these packages; install, use and remove them in a bare Debian (root)
	@tools/setup deb-check
	BLY_FULL=1 BLY_DEBS=$(CURDIR)/$(B)/deb $(ENV) $(PYTEST) -rs tests/test_packages.py
