# Filters on NVIDIA's devices: code for Hopper, and what drivers compile for every device from Turing on.
NVCC := $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA_ARCH  = -gencode arch=compute_75,code=compute_75 -gencode arch=compute_90,code=sm_90
CUDA_FLAGS = -std=c++17 -O3 $(CUDA_ARCH) -Iinclude -Iadapters/cuda -diag-suppress 177 \
    -Xcompiler -fPIC,-Wall,-fvisibility=hidden
CUDA_SRC  := $(wildcard adapters/cuda/*.h include/*.h include/*/*.h)
.PHONY: cuda cuda-test
CUDA_MADE = $(B)/libbloomery_cuda.so $(B)/bloomery-bench-gpu $(B)/cuda/device_test
cuda: $(if $(NVCC),$(CUDA_MADE)) ## filters on a GPU: libbloomery_cuda and its bench, where nvcc is
	$(if $(NVCC),,@echo "  SKIP  libbloomery_cuda.so: no nvcc here (CUDA 12 or 13)")
$(B)/cuda/%.o: adapters/cuda/%.cu $(CUDA_SRC)
	@mkdir -p $(@D)
	$(call say,NVCC,$@)
	$(Q)$(NVCC) $(CUDA_FLAGS) -c $< -o $@
$(B)/libbloomery_cuda.so: $(B)/cuda/filter.o $(B)/libbloomery.so
	$(call say,LINK,$@)
	$(Q)$(NVCC) -shared $< -L$(B) -lbloomery -o $@
$(B)/bloomery-bench-gpu: $(B)/cuda/bench.o
$(B)/cuda/device_test: $(B)/cuda/device_test.o
$(B)/bloomery-bench-gpu $(B)/cuda/device_test: $(B)/cuda/filter.o $(B)/libbloomery.a
	$(call say,LINK,$@)
	$(Q)$(NVCC) $(filter %.o %.a,$^) -o $@
cuda-test: cuda ## the device against the processor, for CUDA_KEYS=1000000 keys; wants a device
	$(if $(NVCC),$(B)/cuda/device_test $(CUDA_KEYS))
