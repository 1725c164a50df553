#pragma once
#include "device/cpu/cpu_device.h"

namespace foretoken::check {

// The CPU's step ops: the reference of the CUDA ones.
cpu::CpuKernels reference_kernels();

}  // namespace foretoken::check
