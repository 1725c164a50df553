#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec telechat_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.pairs_kv = true;
  attention.o_bias = true;
  attention.base = "self_attention.";
  attention.o = "dense";
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.down_bias = true;
  return pre_norm_layer(attention, mlp);
}

// Angles are those of the length that the model was trained for, whatever a text's is: the makers'
// code widens them once a text is longer.
Status write_telechat_rope(const ConfigFields& fields, Json* json) {
  int32_t trained = 8192, base = 4096, hidden = 0, heads = 0;
  FT_RETURN_IF_ERROR(fields.read_count("training_seqlen", &trained));
  FT_RETURN_IF_ERROR(fields.read_count("base_seqlen", &base));
  FT_RETURN_IF_ERROR(fields.need_count("hidden_size", &hidden));
  FT_RETURN_IF_ERROR(fields.need_count("num_attention_heads", &heads));
  const double dim = static_cast<double>(hidden) / heads;
  const double doublings = std::ceil(std::log2(static_cast<double>(trained) / base) + 1);
  const double widened = std::max(std::exp2(doublings) - 1, 1.0);
  if (json->find("max_position_embeddings") == json->end()) {
    (*json)["max_position_embeddings"] = trained;
  }
  if (dim > 2) (*json)["rope_theta"] = 10000.0 * std::pow(widened, dim / (dim - 2));
  return {};
}

Status translate_telechat(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"n_layer", "num_hidden_layers"},
                                     {"n_head", "num_attention_heads"},
                                     {"ffn_hidden_size", "intermediate_size"},
                                     {"layer_norm_epsilon", "rms_norm_eps"}};
  take_renamed(fields, kNames, json);
  for (const char* name : {"embed_layernorm", "logn", "apply_residual_connection_post_layernorm"}) {
    bool asks = false;
    FT_RETURN_IF_ERROR(fields.read_flag(name, &asks));
    if (!asks) continue;
    return unsupported(fields.where() + ": " + name +
                       " is not supported; use a model like TeleChat 2, whose files say false");
  }
  return write_telechat_rope(fields.of(*json), json);
}

constexpr Architecture telechat(const char* name, const char* description) {
  return {
      .name = name,
      .description = description,
      .defaults = R"({"rms_norm_eps": 1e-5, "hidden_act": "silu"})",
      .decoder = {.places = {{{"transformer.", "lm_head.weight"}, {nullptr, nullptr}}},
                  .embedding = "word_embeddings",
                  .layers = "h.",
                  .last_norm = "ln_f",
                  .layer = telechat_layer},
      .translate = translate_telechat,
  };
}

}  // namespace

// China Telecom 2024: Llama's blocks with keys and values in one tensor, and biases of what leaves
// attention and MLPs.
constinit const Architecture kTeleChatArchitecture = telechat("TeleChatForCausalLM", "TeleChat 1");
constinit const Architecture kTeleChat2Architecture =
    telechat("TeleChat2ForCausalLM", "TeleChat 2 and 2.5");

}  // namespace foretoken
