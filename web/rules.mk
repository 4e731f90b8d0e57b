# The playground: the package's C, and what it shows of the workbench and of rings.
PLAY_SRC := $(sort $(wildcard web/*.c)) base/grow.c $(addprefix workbench/,expression.c explain.c explain_ways.c ring_model.c) \
    $(addprefix chord/,chord.c chord_walk.c chord_join.c)
$(B)/web/play.wasm: $(patsubst %.c,$(B)/wasm/plain/%.o,src/kinds/table.c $(WASM_SRC) $(PLAY_SRC)) \
    $(B)/wasm/plain/libbloomery.a
-include $(PLAY_SRC:%.c=$(B)/wasm/plain/%.d)
WEB_FILES := $(filter-out %.c %.h %.mk,$(wildcard web/*))
WEB_MADE  := $(B)/web/play.wasm $(B)/web/bloomery.js $(WEB_FILES:%=$(B)/%)
.PHONY: web site
web: $(if $(WASM),$(WEB_MADE)) ## the playground, as static files in build/web; bloomery web serves it
	$(if $(WASM),,@echo "  SKIP  the playground: $(WASM_LACKS)")
site: web ## the handbook with search, in build/site; bloomery web serves it beside the playground
	@tools/setup site
	$(Q)tools/site $(B)
$(WEB_FILES:%=$(B)/%): $(B)/%: %
	@mkdir -p $(@D)
	$(Q)cp $< $@
