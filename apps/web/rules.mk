# bloomery-web: what fetches by HTTP, and serves it; what digests tell each other may be sealed.
$(eval $(call library,CURL,libcurl,curl/curl.h,-lcurl,libcurl4-openssl-dev))
$(eval $(call library,MICROHTTPD,libmicrohttpd,microhttpd.h,-lmicrohttpd,libmicrohttpd-dev))
$(eval $(call program,web,digest passwords web,apps/digest apps/passwords apps/web,CURL MICROHTTPD SODIUM))
