# bloomery-shell: the prompt, edited by libedit, and the commands that may be typed there.
$(eval $(call library,LIBEDIT,libedit,histedit.h,-ledit,libedit-dev))
$(eval $(call program,shell,shell has add remove count get set info note plan kinds help,apps/shell,LIBEDIT))
