#include "engine/prompt_cost.h"

#include <algorithm>
#include <cstdint>

namespace foretoken {
namespace {

// A product of attention takes this many times as long as one of a linear layer: about 7 on a CPU
// with AVX-512 and 3 to 11, by rows, on an H200.
constexpr int64_t kAttentionSlowness = 6;

}  // namespace

int context_per_row(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size;
  const int64_t heads = int64_t{config.num_heads} * config.head_dim;
  const int64_t kv_heads = int64_t{config.num_kv_heads} * config.head_dim;
  const int64_t linear =
      hidden * (2 * heads + 2 * kv_heads) + 3 * hidden * int64_t{config.intermediate_size};
  const int64_t unbounded =
      std::ranges::count_if(config.layers, [](const LayerConfig& layer) { return !layer.window; });
  if (unbounded == 0 || heads == 0) return 0;
  const int64_t layers = static_cast<int64_t>(config.layers.size());
  // Scores and values: two products for each token of the context.
  const int64_t tokens = linear * layers / (2 * heads * unbounded * kAttentionSlowness);
  return static_cast<int>(std::clamp<int64_t>(tokens, 1, 1 << 24));
}

}  // namespace foretoken
