# bloomery-net: what talks to its like, sealed by libsodium, and what seals files; words of web pages by libgumbo.
$(eval $(call library,SODIUM,libsodium,sodium.h,-lsodium,libsodium-dev))
$(eval $(call program,net,net node ring seal sync isect join,apps/net apps/node \
    apps/ring apps/seal apps/sync apps/join $(if $(filter yes,$(GUMBO)),io/html),SODIUM,GUMBO))
