# bloomery-net: what seals with libsodium.
$(eval $(call library,SODIUM,libsodium,sodium.h,-lsodium,libsodium-dev))
$(eval $(call program,net,net node ring seal,apps/net apps/node apps/ring apps/seal,SODIUM))
