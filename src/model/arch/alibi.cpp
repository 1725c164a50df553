#include "model/arch/alibi.h"

#include <bit>
#include <cmath>
#include <utility>

namespace foretoken {
namespace {

// first, first + step, ... of n's powers; `count` of them.
void add_powers(int32_t n, float most, int32_t first, int32_t step, int32_t count,
                std::vector<float>* slopes) {
  for (int32_t i = 0; i < count; ++i) {
    const double power = first + double(step) * i;
    slopes->push_back(static_cast<float>(std::exp2(-double(most) * power / n)));
  }
}

}  // namespace

std::vector<float> alibi_slopes(int32_t num_heads) {
  const auto n = static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(num_heads)));
  std::vector<float> slopes;
  add_powers(n, 8, 1, 1, n, &slopes);
  add_powers(2 * n, 8, 1, 2, num_heads - n, &slopes);
  return slopes;
}

std::vector<float> alibi_slopes_by_parity(int32_t num_heads, float most) {
  const auto n = static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(num_heads)));
  std::vector<float> slopes;
  if (n == num_heads) {
    add_powers(n, most, 1, 1, n, &slopes);
    return slopes;
  }
  add_powers(n, most, 2, 2, n / 2, &slopes);
  add_powers(n, most, 1, 2, num_heads - n / 2, &slopes);
  return slopes;
}

void fall_with_distance(ModelConfig* config, std::vector<float> slopes) {
  config->alibi_slopes = std::move(slopes);
  for (LayerConfig& layer : config->layers) layer.rope = false;
}

}  // namespace foretoken
