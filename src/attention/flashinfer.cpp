#include "attention/flashinfer.h"

#include <array>

#include "attention/portable.h"

namespace foretoken {
namespace {

constexpr std::array kFlashInferFormats = {KvFormat::kPlain};
constexpr std::array kFlashInferPlaces = {AttentionPlace{DeviceType::kCuda, kFlashInferFormats}};

class FlashInferAttention final : public AttentionBackend {
 public:
  const AttentionTraits& traits() const override {
    static constexpr AttentionTraits traits = {
        .name = "flashinfer",
        .aliases = {},
        .description = "prompts by FlashInfer's FlashAttention-3 kernel, the rest as portable",
        .places = kFlashInferPlaces,
        .batch_invariant = false,
        .any_order = true,
        .device_needs =
            "a GPU of compute capability 9.0 (H100, H200) and a CUDA plug-in that was "
            "built for 90a with FlashInfer's headers, as ./quickstart --cuda does",
        .model_needs =
            "bfloat16, head sizes of 64 or 128, scores without soft cap and layers "
            "without window"};
    return traits;
  }

  bool serves(const AttentionDemand& demand) const override {
    return demand.dtype == DType::kBF16 && (demand.head_dim == 64 || demand.head_dim == 128) &&
           demand.softcap == 0 && demand.has_full_layers;
  }

  // Its lists take a small part of what partial results may.
  int64_t workspace_floats(const Device& device, int32_t max_rows, int32_t num_heads,
                           int32_t head_dim) const override {
    return portable_attention().workspace_floats(device, max_rows, num_heads, head_dim);
  }
};

}  // namespace

const AttentionBackend& flashinfer_attention() {
  static const FlashInferAttention backend;
  return backend;
}

}  // namespace foretoken
