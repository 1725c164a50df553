#include "model/layer/layer_spec.h"

#include <algorithm>
#include <cmath>

#include "compat/kv_format.h"

namespace foretoken {
namespace {

KvGroupSpec layout_of(const GqaSpec& mixer, DType dtype, KvFormat format) {
  return {.num_layers = mixer.kv_of < 0 ? 1 : 0,
          .num_kv_heads = mixer.num_kv_heads,
          .head_dim = mixer.head_dim,
          .dtype = dtype,
          .window = 0,
          .format = format,
          .index = {.dim = mixer.index.head_dim, .num_layers = mixer.index.exists() ? 1 : 0}};
}

KvGroupSpec layout_of(const LatentSpec& mixer, DType dtype, KvFormat format) {
  return {.num_layers = 1,
          .num_kv_heads = 1,
          .head_dim = mixer.entry_dim(),
          .dtype = dtype,
          .window = 0,
          .format = format,
          .value_dim = mixer.kv_rank,
          .index = {.dim = mixer.index.head_dim,
                    .positions = mixer.index.pool,
                    .num_layers = mixer.index.exists() && mixer.index.own ? 1 : 0}};
}

KvGroupSpec layout_of(const CompressedSpec& mixer, DType dtype, KvFormat format) {
  KvGroupSpec layout{.num_layers = 1,
                     .num_kv_heads = 1,
                     .head_dim = mixer.head_dim,
                     .dtype = dtype,
                     .format = format,
                     .value_dim = mixer.head_dim,
                     .rope_dim = mixer.rope_dim};
  if (mixer.ratio == 0) return layout;
  layout.compressed[0] = {mixer.head_dim, mixer.ratio, 1, mixer.rope_dim};
  if (mixer.index.exists()) layout.index = {mixer.index.head_dim, mixer.ratio, 1};
  return layout;
}

KvGroupSpec layout_of(const ShortConvSpec&, DType, KvFormat) { return {}; }
KvGroupSpec layout_of(const LinearSpec&, DType, KvFormat) { return {}; }
KvGroupSpec layout_of(const SelectiveSpec&, DType, KvFormat) { return {}; }
KvGroupSpec layout_of(const WkvSpec&, DType, KvFormat) { return {}; }
KvGroupSpec layout_of(const Absent&, DType, KvFormat) { return {}; }

BlockIndexSpec index_of(const ModelConfig& config) {
  const BlockIndexConfig& index = config.block_index;
  return {config.num_kv_heads, index.head_dim, index.block, index.top, index.first, index.nearest};
}

int32_t own_or(int32_t own, int32_t of_config) { return own > 0 ? own : of_config; }

}  // namespace

GqaSpec gqa_of(const ModelConfig& config, const LayerConfig& layer) {
  return {.num_heads = own_or(layer.num_heads, config.num_heads),
          .num_kv_heads = own_or(layer.num_kv_heads, config.num_kv_heads),
          .head_dim = own_or(layer.head_dim, config.head_dim),
          .inputs = config.hidden_size,
          .window = layer.window,
          .rope = layer.rope,
          .scale = config.attention_scale,
          .softcap = config.attention_softcap,
          .qkv_bias = config.attention_bias,
          .o_bias = config.attention_out_bias,
          .clip = config.qkv_clip,
          .out_scale = config.attention_out_scale,
          .kv_of = layer.kv_of,
          .index = layer.chooses_blocks ? index_of(config) : BlockIndexSpec{},
          .slopes = config.alibi_slopes};
}

LatentSpec latent_of(const ModelConfig& config, const LayerConfig& layer) {
  const LatentConfig& latent = config.latent;
  return {.num_heads = own_or(layer.num_heads, config.num_heads),
          .q_rank = latent.q_rank,
          .kv_rank = latent.kv_rank,
          .nope_dim = latent.nope_dim,
          .rope_dim = latent.rope_dim,
          .value_dim = latent.value_dim,
          .inputs = config.hidden_size,
          .scale = config.attention_scale,
          .bias = config.attention_bias,
          .o_bias = config.attention_out_bias,
          .kv_scale = latent.kv_scale,
          .paired = latent.paired,
          .index = {latent.index.num_heads, latent.index.head_dim, latent.index.top,
                    latent.index.paired, !layer.shares_index, latent.index.turns_last,
                    latent.index.norm_eps, latent.index.pool}};
}

CompressedSpec compressed_of(const ModelConfig& config, const LayerConfig& layer) {
  const CompressedConfig& compressed = config.compressed;
  CompressedSpec spec{.num_heads = config.num_heads,
                      .head_dim = config.head_dim,
                      .rope_dim = compressed.rope_dim,
                      .inputs = config.hidden_size,
                      .q_rank = compressed.q_rank,
                      .groups = compressed.groups,
                      .o_rank = compressed.o_rank,
                      .window = layer.window,
                      .scale = config.attention_scale,
                      .ratio = layer.compress,
                      .overlaps = layer.chooses};
  if (layer.chooses) {
    spec.index = {compressed.index.num_heads, compressed.index.head_dim, compressed.index.top};
  }
  return spec;
}

ShortConvSpec short_conv_of(const ModelConfig& config) {
  return {.inputs = config.hidden_size,
          .channels = config.recurrent.channels,
          .width = config.recurrent.conv_width,
          .bias = config.recurrent.bias};
}

LinearSpec gated_delta_of(const ModelConfig& config) {
  const RecurrentConfig& linear = config.recurrent;
  return {.shape = {.key_heads = linear.key_heads,
                    .value_heads = linear.value_heads,
                    .key_dim = linear.key_dim,
                    .value_dim = linear.value_dim,
                    .scaled = true,
                    .delta = true,
                    .tiled = linear.tiled},
          .inputs = config.hidden_size,
          .conv_width = linear.conv_width,
          .unit = true,
          .q_scale = 1 / std::sqrt(static_cast<float>(linear.key_dim)),
          .norm_groups = linear.value_heads};
}

LinearSpec state_space_of(const ModelConfig& config) {
  const RecurrentConfig& recurrent = config.recurrent;
  return {.shape = {.key_heads = recurrent.key_heads,
                    .value_heads = recurrent.value_heads,
                    .key_dim = recurrent.key_dim,
                    .value_dim = recurrent.value_dim,
                    .scaled = true},
          .inputs = config.hidden_size,
          .conv_width = recurrent.conv_width,
          .conv_bias = recurrent.conv_bias,
          .gates = LinearGates::kStep,
          .min_step = recurrent.min_step,
          .max_step = recurrent.max_step,
          .in_bias = recurrent.bias,
          .out_bias = recurrent.bias,
          .norm_groups = recurrent.normed ? recurrent.key_heads : 0,
          .norm_own_weights = true,
          .gates_first = recurrent.gates_first,
          .factors = recurrent.factors,
          .files = LinearFiles::kStep,
          .base = "mamba.",
          .in_qkv = "in_proj",
          .skip = "D"};
}

SelectiveSpec selective_of(const ModelConfig& config) {
  const RecurrentConfig& recurrent = config.recurrent;
  return {.inputs = config.hidden_size,
          .channels = recurrent.channels,
          .d_state = recurrent.key_dim,
          .step_rank = recurrent.step_rank,
          .conv_width = recurrent.conv_width,
          .conv_bias = recurrent.conv_bias,
          .bias = recurrent.bias};
}

WkvSpec wkv_of(const ModelConfig& config, const LayerConfig& layer) {
  const RecurrentConfig& recurrent = config.recurrent;
  return {.shape = {.key_heads = recurrent.key_heads,
                    .value_heads = recurrent.value_heads,
                    .key_dim = recurrent.key_dim,
                    .value_dim = recurrent.value_dim,
                    .channel_decay = true,
                    .removes = true},
          .inputs = config.hidden_size,
          .ranks = recurrent.ranks,
          .is_first = layer.first_values,
          .norm_eps = recurrent.norm_eps};
}

GatedMlpSpec gated_mlp_of(const ModelConfig& config, const LayerConfig& layer) {
  return {.inner = own_or(layer.intermediate_size, config.intermediate_size),
          .activation = config.activation,
          .bias = config.mlp_bias,
          .sparsity = layer.sparsity,
          .gate_scale = config.gate_scale,
          .out_scale = config.mlp_out_scale};
}

ExpertsSpec experts_of(const ModelConfig& config) {
  const ExpertConfig& experts = config.experts;
  return {.count = experts.count,
          .zero_count = experts.zero_count,
          .top_k = experts.top_k,
          .inputs = config.hidden_size,
          .inner = experts.inner,
          .shared_inner = experts.shared_inner,
          .latent = experts.latent,
          .activation = config.activation,
          .score = experts.score,
          .num_groups = experts.num_groups,
          .top_groups = experts.top_groups,
          .groups = experts.groups,
          .normalised = experts.normalised,
          .scale = experts.scale,
          .jitter = experts.jitter,
          .clamp = experts.clamp,
          .correction = experts.correction ? "gate.e_score_correction_bias" : nullptr};
}

ExpertsSpec mixtral_experts_of(const ModelConfig& config) {
  ExpertsSpec experts = experts_of(config);
  experts.base = "block_sparse_moe.";
  experts.gate = "w1";
  experts.up = "w3";
  experts.down = "w2";
  return experts;
}

GatedMlpSpec shared_mlp_of(const ExpertsSpec& experts) {
  const bool plain = experts.activation == Activation::kClampedSilu;
  return {.inner = experts.shared_inner,
          .activation = experts.shared_clamp ? Activation::kClampedSilu
                        : plain              ? Activation::kSilu
                                             : experts.activation,
          .bias = experts.shared_bias,
          .fused = experts.shared_fused,
          .clamp = experts.shared_clamp.value_or(plain ? GateClamp{} : experts.clamp),
          .base = "",
          .gate_up = experts.shared_gate_up,
          .gate = experts.shared_gate_proj,
          .up = experts.shared_up_proj,
          .down = experts.shared_down};
}

FeedForwardSpec experts_or_mlp(const ModelConfig& config, const LayerConfig& layer,
                               const ExpertsSpec& experts) {
  if (layer.experts) return experts;
  return gated_mlp_of(config, layer);
}

PlainMlpSpec plain_mlp_of(const ModelConfig& config, const LayerConfig& layer) {
  return {.inner = own_or(layer.intermediate_size, config.intermediate_size),
          .activation = config.activation,
          .bias = config.mlp_bias};
}

// SiLU grows where it is positive: cutting what enters it cuts what leaves it.
GateClamp clamp_behind_silu(float limit) {
  double gate = limit;
  for (int i = 0; i < 50; ++i) gate = limit * (1 + std::exp(-gate));
  return {.limit = static_cast<float>(gate), .alpha = 1, .up_limit = limit, .shift = 0};
}

LayerSpec pre_norm_layer(const MixerSpec& mixer, const FeedForwardSpec& feed_forward) {
  return {.mixer_norm = "input_layernorm",
          .mixer = mixer,
          .feed_forward_norm = "post_attention_layernorm",
          .feed_forward = feed_forward};
}

LayerSpec post_norm_layer(const MixerSpec& mixer, const FeedForwardSpec& feed_forward) {
  return {.mixer = mixer,
          .mixer_post_norm = "post_attention_layernorm",
          .feed_forward = feed_forward,
          .feed_forward_post_norm = "post_feedforward_layernorm"};
}

LayerSpec sandwich_layer(const MixerSpec& mixer, const FeedForwardSpec& feed_forward) {
  return {.mixer_norm = "input_layernorm",
          .mixer = mixer,
          .mixer_post_norm = "post_attention_layernorm",
          .feed_forward_norm = "pre_feedforward_layernorm",
          .feed_forward = feed_forward,
          .feed_forward_post_norm = "post_feedforward_layernorm"};
}

LayerSpec parallel_layer(const MixerSpec& mixer, const FeedForwardSpec& feed_forward) {
  return {.mixer_norm = "input_layernorm",
          .mixer = mixer,
          .feed_forward = feed_forward,
          .parallel = true};
}

NormForm norms_of(const ModelConfig& config, const DecoderTraits& traits) {
  NormForm norms = traits.norms;
  if (config.rms_norms) norms.kind = NormKind::kRms;
  return norms;
}

std::vector<LayerSpec> compose_layers(const ModelConfig& config, const DecoderTraits& traits) {
  std::vector<LayerSpec> layers;
  for (const LayerConfig& layer : config.layers) layers.push_back(traits.layer(config, layer));
  return layers;
}

GqaSpec part_of(const GqaSpec& whole, const Sharding& sharding) {
  if (!sharding.is_cut()) return whole;
  GqaSpec part = whole;
  part.num_heads = static_cast<int32_t>(shard_of(whole.num_heads, sharding).count);
  part.num_kv_heads = static_cast<int32_t>(shard_of_kv_heads(whole.num_kv_heads, sharding).count);
  if (whole.index.exists()) part.index.num_heads = part.num_kv_heads;
  return part;
}

LatentSpec part_of(const LatentSpec& whole, const Sharding& sharding) {
  LatentSpec part = whole;
  part.num_heads = static_cast<int32_t>(shard_of(whole.num_heads, sharding).count);
  return part;
}

CompressedSpec part_of(const CompressedSpec& whole, const Sharding& sharding) {
  CompressedSpec part = whole;
  part.num_heads = static_cast<int32_t>(shard_of(whole.num_heads, sharding).count);
  part.groups = static_cast<int32_t>(shard_of(whole.groups, sharding).count);
  return part;
}

ShortConvSpec part_of(const ShortConvSpec& whole, const Sharding& sharding) {
  ShortConvSpec part = whole;
  part.channels = static_cast<int32_t>(shard_of(whole.channels, sharding).count);
  return part;
}

LinearSpec part_of(const LinearSpec& whole, const Sharding& sharding) {
  if (!sharding.is_cut()) return whole;
  LinearSpec part = whole;
  const ShardRange values = shard_of(whole.shape.value_heads, sharding);
  part.shape.value_heads = static_cast<int32_t>(values.count);
  part.shape.key_heads =
      static_cast<int32_t>(shard_of_kv_heads(whole.shape.key_heads, sharding).count);
  // One of no meaning where ranks have parts of groups.
  const bool divides = whole.norm_groups % sharding.size == 0;
  part.norm_groups = divides ? whole.norm_groups / sharding.size : 1;
  if (!whole.fixed_rates.empty()) {
    const auto first = whole.fixed_rates.begin() + values.begin;
    part.fixed_rates.assign(first, first + values.count);
  }
  return part;
}

SelectiveSpec part_of(const SelectiveSpec& whole, const Sharding& sharding) {
  SelectiveSpec part = whole;
  part.channels = static_cast<int32_t>(shard_of(whole.channels, sharding).count);
  return part;
}

WkvSpec part_of(const WkvSpec& whole, const Sharding& sharding) {
  WkvSpec part = whole;
  part.shape.value_heads = static_cast<int32_t>(shard_of(whole.shape.value_heads, sharding).count);
  part.shape.key_heads = part.shape.value_heads;
  return part;
}

GatedMlpSpec part_of(const GatedMlpSpec& whole, const Sharding& sharding) {
  GatedMlpSpec part = whole;
  part.inner = static_cast<int32_t>(shard_of(whole.inner, sharding).count);
  return part;
}

PlainMlpSpec part_of(const PlainMlpSpec& whole, const Sharding& sharding) {
  PlainMlpSpec part = whole;
  part.inner = static_cast<int32_t>(shard_of(whole.inner, sharding).count);
  return part;
}

ExpertsSpec part_of(const ExpertsSpec& whole, const Sharding& sharding) {
  ExpertsSpec part = whole;
  part.num_engines = sharding.experts.num_engines;
  if (!sharding.deals_experts()) {
    part.inner = static_cast<int32_t>(shard_of(whole.inner, sharding).count);
  }
  part.shared_inner = static_cast<int32_t>(shard_of(whole.shared_inner, sharding).count);
  return part;
}

StateSpec state_of(const LayerSpec& layer) {
  if (layer.side) return layer.side->state();
  return std::visit(
      [](const auto& spec) -> StateSpec {
        if constexpr (requires { spec.state(); }) {
          return spec.state();
        } else {
          return {};
        }
      },
      layer.mixer);
}

bool keeps_states(const ModelConfig& config) {
  const Architecture* architecture = find_architecture(config.architecture);
  if (architecture == nullptr) return false;
  const std::vector<LayerSpec> layers = compose_layers(config, architecture->decoder);
  return std::any_of(layers.begin(), layers.end(),
                     [](const LayerSpec& layer) { return state_of(layer).exists(); });
}

KvGroupSpec kv_layout(const MixerSpec& mixer, DType dtype, KvFormat format) {
  return std::visit([&](const auto& spec) { return layout_of(spec, dtype, format); }, mixer);
}

}  // namespace foretoken
