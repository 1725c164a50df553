#pragma once
#include <cstdint>
#include <limits>

#include "base/result.h"
#include "model/config/config_fields.h"

namespace foretoken {

// What the rows of the first product of LinearFiles::kStep, and what the last one leaves, are
// multiplied with (Falcon H1).
struct LinearFactors {
  float gates = 1;
  float values = 1;
  float keys = 1;
  float queries = 1;
  float steps = 1;
  float out = 1;
  bool operator==(const LinearFactors&) const = default;
};

// How many numbers what RWKV 7 makes of low rank is made of.
struct WkvRanks {
  int32_t decay = 0;
  int32_t rate = 0;   // (in-context learning rate, a)
  int32_t share = 0;  // of the first layer's values
  int32_t gate = 0;
  bool operator==(const WkvRanks&) const = default;
};

// Sizes of what layers have in the place of attention (LayerConfig::recurrent): heads as of
// LinearShape, or a convolution alone. Of a rank's part heads and channels are divided.
struct RecurrentConfig {
  int32_t key_heads = 0;    // of queries and keys (groups, n_groups)
  int32_t value_heads = 0;  // 0: there are no heads
  int32_t key_dim = 0;      // (state size, d_state)
  int32_t value_dim = 0;
  int32_t channels = 0;   // of a convolution alone, or of Mamba 1
  int32_t step_rank = 0;  // as of SelectiveSpec
  int32_t conv_width = 0;
  bool conv_bias = false;
  float norm_eps = 0;        // of SelectiveSpec
  bool bias = false;         // of the products before and behind
  float scale_factor = 1;    // as of LinearInputsArgs
  float lower_bound = 0;     // of logarithms of decays, as of LinearInputsArgs; 0: they have none
  bool tiled = false;        // as of LinearShape
  bool whole_gates = false;  // gates are made of whole rows, where that is left to the file
  // Of Mamba 2: bounds of steps, and whether what leaves is normed, by the groups.
  float min_step = 0;
  float max_step = std::numeric_limits<float>::infinity();
  bool normed = true;
  int32_t norm_groups = 0;  // as of LinearSpec, where that is left to the file
  bool gates_first = true;  // as of LinearSpec, and so are the next
  LinearFactors factors;
  WkvRanks ranks;

  bool exists() const { return value_heads > 0 || channels > 0; }
  bool operator==(const RecurrentConfig&) const = default;
};

// Reads linear_num_key_heads, linear_num_value_heads, linear_key_head_dim, linear_value_head_dim
// and linear_conv_kernel_dim, which must all be there, and linear_heads_tiled, of GGUF files alone,
// and checks them.
Status read_linear_sizes(const ConfigFields& fields, RecurrentConfig* out);

// InvalidArgument where value heads are no multiple of key heads, Unsupported where keys or a
// convolution are wider than kernels take; the object of `fields` is named.
Status check_recurrent_sizes(const ConfigFields& fields, const RecurrentConfig& config);

// Unsupported where the field `name`, which says what short convolutions pass, too, is not silu.
Status check_convolution_activation(const ConfigFields& fields, const char* name);

}  // namespace foretoken
