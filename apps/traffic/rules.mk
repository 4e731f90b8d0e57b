# bloomery-traffic: packets, by libpcap; questions between routers are sealed by libsodium, where it is.
$(eval $(call library,PCAP,libpcap,pcap/pcap.h,-lpcap,libpcap-dev))
$(eval $(call program,traffic,traffic,apps/traffic,PCAP,SODIUM))

# What the kernel runs is compiled by clang, for the kernel's machine, and carried as numbers. It has no
# relocations, so that the section is all there is; instructions have 64 bits.
XDP := $(shell $(CLANG) -target bpf -c -x c /dev/null -o /dev/null 2>/dev/null && \
    command -v objcopy >/dev/null && echo yes)
ifeq ($(XDP),yes)
$(B)/xdp/xdp_block.inc: apps/traffic/kernel/block_bpf.c apps/traffic/xdp_layout.h include/bloomery/inline.h
	@mkdir -p $(@D)
	$(call say,BPF,$@)
	$(Q)$(CLANG) -target bpf -O2 -std=gnu11 -ffreestanding -U__SIZEOF_INT128__ -Iinclude -I. -c $< \
	    -o $(@D)/block.o
	$(Q)objcopy -I elf64-little -O binary -j xdp $(@D)/block.o $(@D)/block.bin
	$(Q)od -An -v -tx8 $(@D)/block.bin | sed 's/ \([0-9a-f]\{16\}\)/ UINT64_C(0x\1),/g' > $@
XDP_USERS = $(VARIANTS:%=$(B)/%/apps/traffic/block_xdp.o)
$(XDP_USERS): $(B)/xdp/xdp_block.inc
$(XDP_USERS): MORE = -DBLY_XDP='"xdp_block.inc"' -I$(B)/xdp
endif
