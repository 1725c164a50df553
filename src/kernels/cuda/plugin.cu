#include <cstdio>
#include <string>

#include "device/cuda/cuda_device.h"
#include "kernels/cuda/launchers.h"
#include "kernels/op.h"

namespace foretoken::cuda {
namespace {

// In the order of Op.
constexpr CudaOp kOps[] = {
    {launch_delay, "delay"},     {launch_upload, "upload"},       {launch_prepare, "prepare"},
    {launch_embed, "embed"},     {launch_rms_norm, "rms_norm"},   {launch_gemm, "gemm"},
    {launch_rope_kv, "rope_kv"}, {launch_attention, "attention"}, {launch_gated_act, "gated_act"},
    {launch_softcap, "softcap"}, {launch_sample, "sample"},       {launch_commit, "commit"},
    {launch_publish, "publish"}, {launch_ngram, "ngram"},
};
constexpr int kNumOps = static_cast<int>(Op::kCount);
static_assert(sizeof(kOps) / sizeof(kOps[0]) == kNumOps);

}  // namespace
}  // namespace foretoken::cuda

extern "C" int foretoken_cuda_abi() { return foretoken::kCudaPluginAbi; }

extern "C" foretoken::Device* foretoken_cuda_open(int ordinal, char* error, size_t error_bytes) {
  using namespace foretoken::cuda;
  std::string reason;
  auto device =
      open_device({kOps, kNumOps, report_failures_to, pack_weight, free_weight}, ordinal, reason);
  if (device == nullptr && error_bytes > 0) {
    std::snprintf(error, error_bytes, "%s", reason.c_str());
  }
  return device.release();
}
