# The module for PAM, which hashes passwords as the lists do.
$(eval $(call library,PAM,pam,security/pam_modules.h,-lpam,libpam0g-dev))
ifeq ($(PAM),yes)
$(eval $(call module,pam_bloomery.so,$(sort $(wildcard adapters/pam/*.c)),$(B)/release/jobs.a,-lpam))
ADAPTERS += $(B)/pam_bloomery.so
$(call installs,$(B)/pam_bloomery.so,$(LIBDIR)/bloomery)
else
$(call skips,pam_bloomery.so: no headers of PAM here (libpam0g-dev))
endif
