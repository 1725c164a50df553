#include "kernels/attention/cuda/attention_flex.cuh"

#include <cudaTypedefs.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/attention/cuda/flex/nvrtc_library.cuh"
#include "kernels/flex/flex_program.h"
#include "kernels/flex/flex_source.h"

namespace foretoken::cuda {
namespace {

// Through the runtime, so that nothing links with the driver's library.
template <class Function>
Function driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found);
  const bool ok = status == cudaSuccess && found == cudaDriverEntryPointSuccess;
  return ok ? reinterpret_cast<Function>(function) : nullptr;
}

struct ModuleFunctions {
  PFN_cuModuleLoadData_v2000 load = driver_function<PFN_cuModuleLoadData_v2000>("cuModuleLoadData");
  PFN_cuModuleUnload_v2000 unload = driver_function<PFN_cuModuleUnload_v2000>("cuModuleUnload");
  PFN_cuModuleGetFunction_v2000 find =
      driver_function<PFN_cuModuleGetFunction_v2000>("cuModuleGetFunction");
  PFN_cuLaunchKernel_v4000 launch = driver_function<PFN_cuLaunchKernel_v4000>("cuLaunchKernel");

  bool ok() const {
    return load != nullptr && unload != nullptr && find != nullptr && launch != nullptr;
  }
};

const ModuleFunctions& module_functions() {
  static const ModuleFunctions functions;
  return functions;
}

// A kernel in the memory of one device.
struct FlexKernel {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  int device = 0;
  ~FlexKernel() {
    int current = 0;
    cudaGetDevice(&current);
    cudaSetDevice(device);
    // What runs may be of this module.
    cudaDeviceSynchronize();
    module_functions().unload(module);
    cudaSetDevice(current);
  }
};

Result<std::shared_ptr<FlexKernel>> compile_for(const std::string& source, int device) {
  if (!module_functions().ok()) return internal_error("the driver loads no modules");
  int major = 0;
  int minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  FT_ASSIGN_OR_RETURN(
      const std::vector<char> code,
      compile_at_run_time(source, "sm_" + std::to_string(major) + std::to_string(minor)));
  CUmodule module = nullptr;
  if (module_functions().load(&module, code.data()) != CUDA_SUCCESS) {
    return internal_error("the driver does not load a kernel that libnvrtc has compiled");
  }
  auto kernel = std::make_shared<FlexKernel>();
  kernel->module = module;
  kernel->device = device;
  if (module_functions().find(&kernel->function, module, kFlexKernel) != CUDA_SUCCESS) {
    return internal_error("the compiled module has no attention");
  }
  return kernel;
}

// Kernels by source and device, the last used first; those that nobody holds go when there are too
// many.
class FlexKernels {
 public:
  Result<std::shared_ptr<FlexKernel>> get(const std::string& source) {
    int device = 0;
    cudaGetDevice(&device);
    std::lock_guard lock(mutex_);
    const auto found = std::find_if(kernels_.begin(), kernels_.end(), [&](const Entry& each) {
      return each.kernel->device == device && each.source == source;
    });
    if (found != kernels_.end()) {
      kernels_.splice(kernels_.begin(), kernels_, found);
      return found->kernel;
    }
    FT_ASSIGN_OR_RETURN(std::shared_ptr<FlexKernel> kernel, compile_for(source, device));
    ++compiled_;
    kernels_.push_front({source, kernel});
    drop_unheld();
    return kernel;
  }

  FlexKernelCounts counts() {
    std::lock_guard lock(mutex_);
    return {compiled_, static_cast<long>(kernels_.size())};
  }

 private:
  struct Entry {
    std::string source;
    std::shared_ptr<FlexKernel> kernel;
  };

  void drop_unheld() {
    auto at = kernels_.end();
    while (kernels_.size() > static_cast<size_t>(kKeptFlexKernels) && at != kernels_.begin()) {
      --at;
      if (at->kernel.use_count() == 1) at = kernels_.erase(at);
    }
  }

  std::mutex mutex_;
  std::list<Entry> kernels_;
  long compiled_ = 0;
};

// It lives until the process ends, since the driver may be gone before it would be destroyed.
FlexKernels& flex_kernels() {
  static auto* const kernels = new FlexKernels;
  return *kernels;
}

const std::string& source_of(const FlexProgram& program, DType dtype, KvFormat format) {
  const bool codes = format == KvFormat::kFp8;
  const bool floats = dtype == DType::kF32;
  const FlexElements elements = codes
                                    ? (floats ? FlexElements::kF32Codes : FlexElements::kBF16Codes)
                                    : (floats ? FlexElements::kF32 : FlexElements::kBF16);
  return program.sources.at(static_cast<size_t>(elements));
}

FlexKernelArgs kernel_args(const AttentionArgs& args) {
  const KvLayer& kv = args.kv;
  return {.num_rows = &args.counts->num_rows,
          .q = args.q,
          .out = args.out,
          .positions = args.positions,
          .row_slot = args.row_slot,
          .block_tables = args.block_tables,
          .k = kv.k,
          .v = kv.v,
          .k_scales = kv.k_scales,
          .v_scales = kv.v_scales,
          .slopes = args.slopes,
          .sinks = args.sinks,
          .max_blocks = args.max_blocks,
          .max_rows = args.max_rows,
          .num_heads = args.num_heads,
          .num_kv_heads = kv.num_kv_heads,
          .block_size = kv.block_size,
          .head_dim = kv.head_dim,
          .window = args.window,
          .chunk = args.chunk,
          .kv_begin = args.kv_begin,
          .first_head = args.flex->first_head,
          .scale = args.scale,
          .softcap = args.softcap};
}

}  // namespace

std::shared_ptr<const void> hold_flex_kernel(const FlexProgram& program, DType dtype,
                                             KvFormat format, std::string& error) {
  const auto kernel = flex_kernels().get(source_of(program, dtype, format));
  if (kernel.ok()) return kernel.value();
  error = kernel.status().message();
  return nullptr;
}

void launch_attention_flex(const AttentionArgs& args, cudaStream_t stream) {
  const auto kernel = flex_kernels().get(source_of(*args.flex, args.kv.dtype, args.kv.format));
  FlexKernelArgs packed = kernel_args(args);
  void* parameters[] = {&packed};
  const auto rows = static_cast<unsigned>(args.max_rows);
  const auto heads = static_cast<unsigned>(args.num_heads);
  if (kernel.ok() &&
      module_functions().launch(kernel.value()->function, rows, heads, 1, 32 * kFlexWarps, 1, 1, 0,
                                stream, parameters, nullptr) == CUDA_SUCCESS) {
    return;
  }
  // The queue reports the last error of the runtime.
  cudaLaunchKernel(nullptr, dim3(1), dim3(1), nullptr, 0, stream);
}

FlexKernelCounts flex_kernel_counts() { return flex_kernels().counts(); }

}  // namespace foretoken::cuda
