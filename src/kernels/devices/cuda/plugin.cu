#include <array>
#include <cstdio>
#include <string>

#include "device/cuda/cuda_device.h"
#include "kernels/attention/cuda/attention_common.cuh"
#include "kernels/attention/cuda/attention_flex.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/op.h"

namespace foretoken::cuda {
namespace {

constexpr int kNumOps = static_cast<int>(Op::kCount);
constexpr std::array<CudaOp, kNumOps> kOps = {{
#define FT_OP(Name, name, kind) {launch_##name, #name},
#include "kernels/ops.def"
#undef FT_OP
}};

}  // namespace
}  // namespace foretoken::cuda

extern "C" int foretoken_cuda_abi() { return foretoken::kCudaPluginAbi; }

extern "C" const char* foretoken_cuda_op(int number) {
  using namespace foretoken::cuda;
  return number >= 0 && number < kNumOps ? kOps[number].name : nullptr;
}

extern "C" foretoken::Device* foretoken_cuda_open(int ordinal, char* error, size_t error_bytes) {
  using namespace foretoken::cuda;
  std::string reason;
  auto device = open_device(
      {kOps.data(), kNumOps, report_failures_to, make_weight, weight_slice_rows, pack_weight,
       free_weight, rows_of_a_wave, keeps_quantized, keeps_together, make_quantized_weight,
       quantized_weight_bytes, has_attention_family, hold_flex_kernel, forget_tails},
      ordinal, reason);
  if (device == nullptr && error_bytes > 0) {
    std::snprintf(error, error_bytes, "%s", reason.c_str());
  }
  return device.release();
}
