#pragma once
#include <cstdint>

#include "base/result.h"
#include "model/config/config_fields.h"
#include "model/config/index_config.h"
#include "model/config/rope_config.h"

namespace foretoken {

// The sizes of latent attention, as of LatentSpec.
struct LatentConfig {
  int32_t q_rank = 0;   // 0: queries are not compressed
  int32_t kv_rank = 0;  // 0: the model has no latent attention
  int32_t nope_dim = 0;
  int32_t rope_dim = 0;
  int32_t value_dim = 0;
  bool paired = true;  // rope_interleave
  float kv_scale = 1;
  bool gated = false;  // what attention leaves, where that is left to the file
  IndexConfig index = {};

  bool exists() const { return kv_rank > 0; }
  int32_t entry_dim() const { return kv_rank + rope_dim; }  // of a position in the KV cache
};

// Reads q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim and
// rope_interleave; all zero where kv_lora_rank is not there. InvalidArgument names the field at
// fault, Unsupported the size that no kernel takes.
Result<LatentConfig> read_latent_config(const ConfigFields& fields);

// Of scores: 1 / sqrt(nope_dim + rope_dim), times the square of YaRN's scale for mscale_all_dim.
Result<float> read_latent_scale(const ConfigFields& fields, const LatentConfig& latent,
                                const RopeConfig& rope);

}  // namespace foretoken
