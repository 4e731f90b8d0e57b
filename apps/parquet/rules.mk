# bloomery-parquet: pages may be packed by snappy, which is not asked for.
$(eval $(call library,SNAPPY,snappy,snappy-c.h,-lsnappy,libsnappy-dev))
$(eval $(call program,parquet,parquet,apps/parquet,,SNAPPY))
