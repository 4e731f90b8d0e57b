# bloomery-redis: filters in Redis, by hiredis.
$(eval $(call library,HIREDIS,hiredis,hiredis/hiredis.h,-lhiredis,libhiredis-dev))
$(eval $(call program,redis,redis,apps/redis,HIREDIS))
