# bloomery-net: what talks to its like, sealed by libsodium, and what seals files.
$(eval $(call library,SODIUM,libsodium,sodium.h,-lsodium,libsodium-dev))
$(eval $(call program,net,net node ring seal sync isect join,apps/net apps/node \
    apps/ring apps/seal apps/sync apps/join,SODIUM))
