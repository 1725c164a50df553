#pragma once
#include <cstdint>

namespace foretoken {

// Sizes of what layers have in the place of attention (LayerConfig::recurrent): heads as of
// LinearShape, or a convolution alone. Of a rank's part heads and channels are divided.
struct RecurrentConfig {
  int32_t key_heads = 0;    // of queries and keys (groups, n_groups)
  int32_t value_heads = 0;  // 0: there are no heads
  int32_t key_dim = 0;      // (state size, d_state)
  int32_t value_dim = 0;
  int32_t channels = 0;  // of a convolution alone
  int32_t conv_width = 0;
  bool conv_bias = false;
  bool bias = false;  // of the products before and behind

  bool exists() const { return value_heads > 0 || channels > 0; }
  bool operator==(const RecurrentConfig&) const = default;
};

}  // namespace foretoken
