#include <algorithm>
#include <iterator>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec doge_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.value_dim = config.value_head_dim;
  attention.dynamic_mask = true;
  LayerSpec spec = pre_norm_layer(attention, gated_mlp_of(config, layer));
  spec.mixer_residual = "input_residual";
  spec.feed_forward_residual = "post_attention_residual";
  return spec;
}

// Sizes of heads that devices have fast kernels for, and some smaller ones.
constexpr int32_t kHeadSizes[] = {16, 32, 48, 64, 80, 96, 112, 128, 192, 256, 512};

// Two elements behind each head carry what a key adds to scores. Up to keep_window_size positions
// no mask hides any of them; longer contexts would drop the keys that add least.
Status read_doge(const ConfigFields& fields, ModelConfig* config) {
  bool mixture = false;
  int32_t kept = 2048;
  FT_RETURN_IF_ERROR(fields.read_flag("is_moe", &mixture));
  FT_RETURN_IF_ERROR(fields.read_count("keep_window_size", &kept));
  if (mixture) {
    return unsupported(fields.where() +
                       ": is_moe is not supported in Doge, whose published router mixes the tokens "
                       "that one call computes, so that no text has one result; use a Doge model "
                       "without experts");
  }
  if (config->attention_bias) {
    return unsupported(fields.where() +
                       ": attention_bias is not supported in Doge; use a model without it");
  }
  config->value_head_dim = config->head_dim;
  const auto* size = std::ranges::lower_bound(kHeadSizes, config->head_dim + 2);
  if (size == std::end(kHeadSizes)) return fields.wrong("head_dim", "at most 510");
  config->head_dim = *size;
  config->rope.max_context = std::min(config->rope.max_context, kept);
  return {};
}

}  // namespace

// SmallDoge 2025: keys say how much they add to scores (dynamic mask attention), and vectors
// multiply the residual before each part adds to it.
constinit const Architecture kDogeArchitecture = {
    .name = "DogeForCausalLM",
    .description = "Doge",
    .defaults = R"({"max_position_embeddings": 2048, "rms_norm_eps": 1e-6})",
    .window_rule = WindowRule::kAlways,
    .decoder = {.layer = doge_layer},
    .read = read_doge,
};

}  // namespace foretoken
