#include "attention/portable.h"

#include <algorithm>
#include <array>

namespace foretoken {
namespace {

constexpr std::array<const char*, 1> kAliases = {"TRITON_ATTN"};
constexpr std::array kCpuFormats = {KvFormat::kPlain, KvFormat::kInt8, KvFormat::kFp8};
constexpr std::array kCudaFormats = {KvFormat::kPlain, KvFormat::kFp8};
constexpr std::array kPortablePlaces = {AttentionPlace{DeviceType::kCpu, kCpuFormats},
                                        AttentionPlace{DeviceType::kCuda, kCudaFormats}};

class PortableAttention final : public AttentionBackend {
 public:
  const AttentionTraits& traits() const override {
    static constexpr AttentionTraits traits = {
        .name = "portable",
        .aliases = kAliases,
        .description = "the device's own paged attention; every head size, CPU and CUDA",
        .places = kPortablePlaces,
        .batch_invariant = true};
    return traits;
  }

  int64_t workspace_floats(const Device& device, int32_t max_rows, int32_t num_heads,
                           int32_t head_dim) const override;
};

int64_t PortableAttention::workspace_floats(const Device& device, int32_t max_rows,
                                            int32_t num_heads, int32_t head_dim) const {
  if (device.type() == DeviceType::kCpu) return 0;
  // Partial results of a split: its accumulator, maximum and sum. Splits are shared between blocks
  // only while there are few rows, since many rows fill the device alone; so the bound below, which
  // holds 12 rows of 32 heads over 128k positions, costs the larger batches nothing.
  constexpr int64_t kMaxSplits = AttentionSplits::of((128 << 10) - 1) + 1;
  constexpr int64_t kMaxFloats = int64_t{48} << 20;
  const int64_t wanted = int64_t{max_rows} * num_heads * kMaxSplits * (head_dim + 2);
  return std::min(wanted, kMaxFloats);
}

}  // namespace

const AttentionBackend& portable_attention() {
  static const PortableAttention backend;
  return backend;
}

}  // namespace foretoken
