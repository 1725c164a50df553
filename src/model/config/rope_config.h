#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "model/config/config_fields.h"

namespace foretoken {

enum class RopeType : uint8_t {
  kDefault,
  kLinear,
  kDynamic,
  kLlama3,
  kYarn,
  kLongrope,
  kProportional,  // Gemma 4: the first pairs turn by frequencies of the whole head
};

// One rotary embedding as a config describes it (Su et al. 2021); rope_table.h computes it.
struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 10000;
  int32_t rotary_dim = 0;        // leading elements of a head that turn; even
  int32_t original_context = 0;  // positions before the extension
  double factor = 1;
  double attention_factor = 1;  // of cos and sin; yarn and longrope
  // longrope: the same up to original_context and beyond (Phi-3.5 MoE); 0: attention_factor.
  double short_scale = 0;
  double long_scale = 0;
  double low_freq_factor = 1;  // llama3
  double high_freq_factor = 4;
  double beta_fast = 32;  // yarn
  double beta_slow = 1;
  bool truncate = true;
  std::vector<double> short_factor;  // longrope: [rotary_dim / 2], up to original_context
  std::vector<double> long_factor;   // beyond it
  int32_t turning_pairs = 0;         // proportional; the others stand still
  // Heads that lie side by side in one (DiffLlama): the frequencies of a head of rotary_dim /
  // copies elements, one time for each.
  int32_t copies = 1;
};

// Sizes of heads, which differ where layers with a window have heads of their own.
struct RopeHeads {
  int32_t full = 0;
  int32_t windowed = 0;
};

struct RopeConfigs {
  RopeConfig full;
  std::optional<RopeConfig> windowed;  // of layers with a window, where they have their own
  // Longest context that the embedding was made for: max_position_embeddings, times the factor of
  // a scaling that config.json adds to it.
  int32_t max_context = 0;
};

// Reads rope_theta, partial_rotary_factor and rope_scaling; or rope_parameters (transformers 5),
// for all layers or by layer type; or rope_local_base_freq beside them (Gemma 3). rope_scaling goes
// before rope_parameters, so that an override of the older name works on either form. The sections
// of mrope say how images turn; text turns as without. A dynamic type with a fixed alpha (Hunyuan)
// only stretches theta. Unsupported names an unknown type and lists the known ones.
Result<RopeConfigs> read_rope_configs(const ConfigFields& fields, RopeHeads heads,
                                      int32_t max_position_embeddings);

}  // namespace foretoken
