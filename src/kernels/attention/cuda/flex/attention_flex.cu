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
#include "kernels/flex/flex_tile_kernel.h"

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

Result<std::shared_ptr<FlexKernel>> compile_for(const std::string& source, const char* name,
                                                int device) {
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
  if (module_functions().find(&kernel->function, module, name) != CUDA_SUCCESS) {
    return internal_error("the compiled module has no attention");
  }
  return kernel;
}

// Kernels by source and device, the last used first; those that nobody holds go when there are too
// many.
class FlexKernels {
 public:
  // name: of the kernel in it.
  Result<std::shared_ptr<FlexKernel>> get(const std::string& source, const char* name) {
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
    FT_ASSIGN_OR_RETURN(std::shared_ptr<FlexKernel> kernel, compile_for(source, name, device));
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

FlexElements flex_elements(DType dtype, KvFormat format) {
  const bool floats = dtype == DType::kF32;
  switch (format) {
    case KvFormat::kInt8:
      return floats ? FlexElements::kF32Integers : FlexElements::kBF16Integers;
    case KvFormat::kFp8:
      return floats ? FlexElements::kF32Codes : FlexElements::kBF16Codes;
    default:
      return floats ? FlexElements::kF32 : FlexElements::kBF16;
  }
}

const std::string& source_of(const FlexProgram& program, DType dtype, KvFormat format) {
  return program.sources.at(static_cast<size_t>(flex_elements(dtype, format)));
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
          .workspace = args.workspace,
          .states = args.states,
          .token_positions = args.of_heads.positions,
          .page_begins = args.of_heads.begins,
          .of_requests = args.flex->of_requests,
          .max_blocks = args.max_blocks,
          .max_rows = args.max_rows,
          .num_heads = args.num_heads,
          .num_kv_heads = kv.num_kv_heads,
          .block_size = kv.block_size,
          .head_dim = kv.head_dim,
          .window = args.window,
          .chunk = args.chunk,
          .kv_begin = args.kv_begin,
          .first_head = args.first_head,
          .part_heads = args.part_heads,
          .context_size = kv.context_size,
          .context_rank = kv.context_rank,
          .heads_of_row = args.of_heads.num_kv_heads,
          .scale = args.scale,
          .softcap = args.softcap};
}

// The kernel's text has these numbers.
static_assert(kAttentionSplit == 256 && AttentionSplits::kNearEnd == 6144 &&
              AttentionSplits::kMiddleEnd == 16384);

// What an op is compiled from: a kernel of tensor cores where the program has one for its type and
// heads, and the op has all positions.
struct FlexSource {
  const std::string& text;
  const char* kernel;
};
FlexSource source_for(const AttentionArgs& args) {
  const bool has_tiles =
      args.kv.dtype == DType::kBF16 && args.states == nullptr && args.kv.format != KvFormat::kInt8;
  const FlexTileSource* tile = has_tiles ? args.flex->tile_of(args.kv.head_dim) : nullptr;
  if (tile == nullptr) return {source_of(*args.flex, args.kv.dtype, args.kv.format), kFlexKernel};
  return {args.kv.format == KvFormat::kFp8 ? tile->codes : tile->plain, kFlexTileKernel};
}

bool launch(const FlexSource& source, dim3 grid, FlexKernelArgs packed, cudaStream_t stream) {
  const auto kernel = flex_kernels().get(source.text, source.kernel);
  void* parameters[] = {&packed};
  return kernel.ok() && module_functions().launch(kernel.value()->function, grid.x, grid.y, grid.z,
                                                  32 * kFlexWarps, 1, 1, 0, stream, parameters,
                                                  nullptr) == CUDA_SUCCESS;
}

// Blocks that share a tile's splits, 0 where each warp takes whole tiles: many rows have enough of
// them, a mask that knows prompts wants rows' last positions, which the merging kernel does not
// know, and partial results may have no room.
int tile_parts(const AttentionArgs& args, int max_splits, int blocks) {
  constexpr int kManyRows = 1024;
  constexpr int kBlocksPerSm = 2;
  const int64_t floats =
      int64_t{args.max_rows} * args.num_heads * max_splits * (args.kv.head_dim + 2);
  if (args.flex->sees_prompts || args.max_rows > kManyRows || args.workspace == nullptr ||
      floats > args.workspace_floats) {
    return 0;
  }
  const int wanted = ceil_div(kBlocksPerSm * device_traits().num_sms, blocks);
  return std::clamp(wanted, 1, ceil_div(max_splits, kFlexWarps));
}

bool launch_tiles(const AttentionArgs& args, const FlexSource& source, cudaStream_t stream) {
  const int group = args.num_heads / args.kv.num_kv_heads;
  const int heads = std::min(group, 16);
  const int pairs = args.kv.num_kv_heads * ceil_div(group, heads);
  FlexKernelArgs packed = kernel_args(args);
  packed.max_splits = splits_bound(args);
  packed.num_parts = tile_parts(args, packed.max_splits, args.max_rows * pairs);
  packed.window_rows = args.max_rows >= 64 ? 16 / heads : 1;
  const bool shared = packed.num_parts > 0;
  const int rows =
      shared ? args.max_rows : ceil_div(args.max_rows, kFlexWarps * packed.window_rows);
  const dim3 grid(rows, pairs, shared ? packed.num_parts : 1);
  if (!launch(source, grid, packed, stream)) return false;
  if (shared) launch_attention_merge(args, {packed.num_parts, packed.max_splits}, stream);
  return true;
}

}  // namespace

std::shared_ptr<const void> hold_flex_kernel(const FlexProgram& program, DType dtype,
                                             KvFormat format, std::string& error) {
  auto held = std::make_shared<std::vector<std::shared_ptr<FlexKernel>>>();
  const auto hold = [&](const std::string& source, const char* name) {
    const auto kernel = flex_kernels().get(source, name);
    if (kernel.ok()) held->push_back(kernel.value());
    if (!kernel.ok()) error = kernel.status().message();
    return kernel.ok();
  };
  const bool tiles = dtype == DType::kBF16 && format != KvFormat::kInt8;
  if (!tiles || program.has_other_heads) {
    if (!hold(source_of(program, dtype, format), kFlexKernel)) return nullptr;
  }
  for (const FlexTileSource& tile : program.tiles) {
    if (!tiles) break;
    if (!hold(format == KvFormat::kFp8 ? tile.codes : tile.plain, kFlexTileKernel)) return nullptr;
  }
  // Whoever holds the same gets the same pointer.
  return {held, held->front().get()};
}

void launch_attention_flex(const AttentionArgs& args, cudaStream_t stream) {
  const FlexSource source = source_for(args);
  const dim3 rows_and_heads(args.max_rows, args.num_heads);
  const bool launched = source.kernel == kFlexTileKernel
                            ? launch_tiles(args, source, stream)
                            : launch(source, rows_and_heads, kernel_args(args), stream);
  if (launched) return;
  // The queue reports the last error of the runtime.
  cudaLaunchKernel(nullptr, dim3(1), dim3(1), nullptr, 0, stream);
}

FlexKernelCounts flex_kernel_counts() { return flex_kernels().counts(); }

}  // namespace foretoken::cuda
