# What is installed beside programs and libraries: man pages of functions, the pages that help and headers cite, what CMake
# wants; and the contact for reports of vulnerabilities, which whoever distributes the result sets.
.DEFAULT_GOAL := all

# make SECURITY_CONTACT=security@example.org: bloomery --version prints it. SECURITY.md says why.
SECURITY_CONTACT =
ifneq ($(SECURITY_CONTACT),)
override CPPFLAGS += -DBLY_SECURITY_CONTACT='"$(SECURITY_CONTACT)"'
endif

MAN3 := $(B)/man3/.done
$(MAN3): tools/man3 $(wildcard include/*.h include/*/*.h)
	@rm -rf $(@D) && mkdir -p $(@D)
	$(call say,MAN,$(@D))
	$(Q)if command -v python3 > /dev/null; then tools/man3 $(@D) > /dev/null; \
	    else echo "  SKIP  man pages of section 3: no python3 here"; fi
	@touch $@
all: $(MAN3)

SHARE_MAN3 = $(DESTDIR)$(PREFIX)/share/man/man3
SHARE_DOC  = $(DESTDIR)$(PREFIX)/share/doc/bloomery
LIB_CMAKE  = $(DESTDIR)$(LIBDIR)/cmake/bloomery
define install_pages
	install -d $(SHARE_MAN3) $(SHARE_DOC)/docs/kinds $(LIB_CMAKE)
	! test -e $(B)/man3/bloomery.3 || install -m 644 $(B)/man3/*.3 $(SHARE_MAN3)/
	install -m 644 README.md CHANGELOG.md SECURITY.md LICENSE $(SHARE_DOC)/
	install -m 644 docs/*.md $(SHARE_DOC)/docs/
	install -m 644 docs/kinds/*.md $(SHARE_DOC)/docs/kinds/
	for f in bloomery-config bloomery-config-version; do sed -e 's,@PREFIX@,$(PREFIX),g; s,@VERSION@,$(VERSION),g' \
	    -e 's,@MAJOR@,$(MAJOR),g; s,@MINOR@,$(MINOR),g' tools/$$f.cmake.in > $(LIB_CMAKE)/$$f.cmake; done
	$(if $(STRIP),for a in $(DESTDIR)$(LIBDIR)/libbloomery*.a; do $(STRIP) --strip-debug $$a; done)
endef
define uninstall_pages
	rm -f $(SHARE_MAN3)/bloomery.3 $(SHARE_MAN3)/bloomery_*.3 $(SHARE_MAN3)/bly_*.3 $(LIB_CMAKE)/bloomery-config*.cmake
	rm -rf $(SHARE_DOC)
endef
