#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/linear/wkv.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec rwkv7_layer(const ModelConfig& config, const LayerConfig& layer) {
  PlainMlpSpec mlp = plain_mlp_of(config, layer);
  mlp.base = "ffn.";
  mlp.up = "key";
  mlp.down = "value";
  return {.mixer_norm = "attn_norm",
          .mixer = wkv_of(config, layer),
          .feed_forward_norm = "ffn_norm",
          .feed_forward = mlp,
          .feed_forward_shift = "ffn.x_k"};
}

// Names of the makers' own exports and of flash-linear-attention's.
constexpr RenamedField kRwkvNames[] = {{"head_size", "head_dim"},
                                       {"layer_norm_epsilon", "norm_eps"},
                                       {"lora_rank_decay", "decay_low_rank_dim"},
                                       {"lora_rank_iclr", "a_low_rank_dim"},
                                       {"lora_rank_value_residual_mix", "v_low_rank_dim"},
                                       {"lora_rank_gate", "gate_low_rank_dim"}};

// What no published model but those for experiments has.
Status check_rwkv7(const ConfigFields& fields, int32_t hidden) {
  bool normed_first = true, biased = true;
  FT_RETURN_IF_ERROR(fields.read_flag("norm_first", &normed_first));
  FT_RETURN_IF_ERROR(fields.read_flag("norm_bias", &biased));
  const Json* values = fields.find("value_dim");
  const bool wide =
      values != nullptr &&
      (values->is_array() ? std::ranges::any_of(*values, [&](const Json& v) { return v != hidden; })
                          : *values != hidden);
  const Json* act = fields.find("hidden_act");
  const bool squared = act == nullptr || *act == "sqrelu" || *act == "relu2";
  const char* field = !normed_first                    ? "norm_first false"
                      : !biased                        ? "norm_bias false"
                      : wide                           ? "value_dim other than hidden_size"
                      : fields.find("attn") != nullptr ? "attn, which makes some layers attend,"
                      : !squared                       ? "hidden_act other than sqrelu"
                                                       : nullptr;
  if (field == nullptr) return {};
  return unsupported(fields.where() + ": " + field +
                     " is not supported in RWKV 7; use a model as published");
}

// Files say the elements of heads, or how many heads there are.
Status read_head_dim(const ConfigFields& fields, int32_t hidden, int32_t* dim) {
  int32_t heads = 0;
  if (fields.find("head_dim") == nullptr) {
    FT_RETURN_IF_ERROR(fields.read_count("num_heads", &heads));
  }
  if (heads > 0 && hidden % heads != 0)
    return fields.wrong("num_heads", "a divisor of hidden_size");
  if (heads > 0) *dim = hidden / heads;
  FT_RETURN_IF_ERROR(fields.read_count("head_dim", dim));
  if (hidden % *dim == 0 && *dim <= kMaxWkvKeyDim) return {};
  return fields.wrong(heads > 0 ? "num_heads" : "head_dim",
                      "such that heads have a divisor of hidden_size, at most " +
                          std::to_string(kMaxWkvKeyDim) + ", elements");
}

// No layer attends; what asks how ranks divide them goes by the heads. Texts have no bound but that
// of memory: the field that other models have says what one was trained on.
Status translate_rwkv7(const ConfigFields& fields, Json* json) {
  take_renamed(fields, kRwkvNames, json);
  const ConfigFields own = fields.of(*json);
  int32_t num_layers = 0, hidden = 0, dim = 64, ratio = 4;
  FT_RETURN_IF_ERROR(own.need_count("num_hidden_layers", &num_layers));
  if (num_layers > 1 << 16) return own.wrong("num_hidden_layers", "at most 2^16");
  FT_RETURN_IF_ERROR(own.need_count("hidden_size", &hidden));
  FT_RETURN_IF_ERROR(check_rwkv7(own, hidden));
  FT_RETURN_IF_ERROR(read_head_dim(own, hidden, &dim));
  if (own.find("intermediate_size") == nullptr) {
    const Json* given = own.find("hidden_ratio");
    if (given != nullptr) FT_RETURN_IF_ERROR(own.read_count("hidden_ratio", &ratio));
    if (hidden > 1 << 20 || ratio > 1 << 6) return own.wrong("hidden_size", "at most 2^20");
    (*json)["intermediate_size"] = (hidden * ratio + 31) / 32 * 32;
  }
  (*json)["hidden_act"] = "relu2";
  (*json)["head_dim"] = dim;
  (*json)["num_attention_heads"] = (*json)["num_key_value_heads"] = hidden / dim;
  (*json)["max_position_embeddings"] = 1048576;
  (*json)["layer_types"] = std::vector<std::string>(static_cast<size_t>(num_layers), "wkv");
  return {};
}

// Ranks that a file leaves out, as flash-linear-attention makes them, whose halves go to the even
// number.
int32_t usual_rank(double rows) {
  return std::max(32, static_cast<int32_t>(std::nearbyint(rows / 32)) * 32);
}

Status read_rwkv7(const ConfigFields& fields, ModelConfig* config) {
  config->layers.front().first_values = true;
  RecurrentConfig& recurrent = config->recurrent;
  recurrent.key_heads = recurrent.value_heads = config->num_heads;
  recurrent.key_dim = recurrent.value_dim = config->head_dim;
  recurrent.norm_eps = static_cast<float>(config->head_dim) * config->rms_norm_eps;
  const double root = std::sqrt(static_cast<double>(config->hidden_size));
  const double factor = config->head_dim / 64.0;
  WkvRanks& ranks = recurrent.ranks;
  ranks = {.decay = usual_rank(2.5 * root * factor),
           .rate = usual_rank(2.5 * root * factor),
           .share = usual_rank(1.7 * root * factor),
           .gate = usual_rank(5 * root)};
  FT_RETURN_IF_ERROR(fields.read_count("decay_low_rank_dim", &ranks.decay));
  FT_RETURN_IF_ERROR(fields.read_count("a_low_rank_dim", &ranks.rate));
  FT_RETURN_IF_ERROR(fields.read_count("v_low_rank_dim", &ranks.share));
  return fields.read_count("gate_low_rank_dim", &ranks.gate);
}

constexpr Architecture rwkv7_architecture(const char* name, const char* description) {
  return {
      .name = name,
      .description = description,
      .defaults = R"({"norm_eps": 1e-5, "tie_word_embeddings": false, "bos_token_id": 1,
                      "eos_token_id": 2})",
      .default_end = 2,
      .decoder = {.embedding = "embeddings",
                  .embedding_norm = "layers.0.pre_norm",
                  .layer = rwkv7_layer,
                  .norms = {.kind = NormKind::kLayer, .bias = true}},
      .recurrent_type = "wkv",
      .translate = translate_rwkv7,
      .read = read_rwkv7,
  };
}

}  // namespace

// Peng et al. 2025: no attention; a state that each token changes by a generalised delta rule, and
// parts that read each row mixed with the one before it. Names are flash-linear-attention's.
constinit const Architecture kRwkv7Architecture = rwkv7_architecture("RWKV7ForCausalLM", "RWKV 7");
constinit const Architecture kRwkv7NewArchitecture =
    rwkv7_architecture("Rwkv7ForCausalLM", "RWKV 7, newer exports");

}  // namespace foretoken
