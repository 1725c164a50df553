#include <nlohmann/json.hpp>

#include "model/config/architecture.h"

namespace foretoken {
namespace {

// Every fourth layer sees all positions, from the first on.
constexpr int32_t kCwmPattern = 4;

Status translate_cwm(const ConfigFields& fields, nlohmann::json* json) {
  if (fields.find("rope_parameters") == nullptr && fields.find("rope_scaling") == nullptr) {
    (*json)["rope_scaling"] = {{"rope_type", "llama3"},
                               {"factor", 16.0},
                               {"low_freq_factor", 1.0},
                               {"high_freq_factor", 4.0},
                               {"original_max_position_embeddings", 8192}};
  }
  const auto type_of = [](int32_t i, int32_t) {
    return i % kCwmPattern == 0 ? "full_attention" : "sliding_attention";
  };
  return write_layer_types(fields, type_of, json);
}

}  // namespace

// Meta FAIR 2025: Llama's blocks, most of which see a window.
constinit const Architecture kCwmArchitecture = {
    .name = "CwmForCausalLM",
    .description = "Code World Model 32B",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "head_dim": 128,
                    "rms_norm_eps": 1e-5, "rope_theta": 1000000.0, "sliding_window": 8192})",
    .window_rule = WindowRule::kPattern,
    .translate = translate_cwm,
};

}  // namespace foretoken
