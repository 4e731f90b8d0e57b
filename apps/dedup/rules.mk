# bloomery-html: the same as bloomery's own dedup and similar, with the text of web pages by libgumbo.
$(eval $(call library,GUMBO,gumbo,gumbo.h,-lgumbo,libgumbo-dev))
$(eval $(call program,html,dedup similar,io/html,GUMBO))
