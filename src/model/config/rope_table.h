#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "model/config/rope_config.h"

namespace foretoken {

// What the rope_kv op needs to turn a head.
struct RopeTable {
  std::vector<float> inv_freq;  // [rotary_dim / 2]
  float scaling = 1;            // of cos and sin
};

// The table for contexts of up to max_model_len positions. Keys that lie in a KV cache cannot be
// turned again, so whatever depends on the length (dynamic, longrope) is decided by max_model_len:
// the plain or short form while that is within the original context, and the form for
// max_model_len, for every position, beyond it.
RopeTable make_rope_table(const RopeConfig& config, int32_t max_model_len);

// What to say where all positions have a form for long texts, which short ones have in vLLM, too,
// but not in transformers; empty: nothing.
std::string long_form_note(const RopeConfig& config, int32_t max_model_len);

}  // namespace foretoken
