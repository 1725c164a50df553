#include "model/decoder_weights.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/collectives.h"
#include "model/checkpoint.h"

namespace foretoken {
Status LayerLoader::load(const std::string& base, const LayerForm& form,
                         DecoderLayerWeights* layer) {
  layer->attention_inputs = form.attention_inputs > 0 ? form.attention_inputs : config_.hidden_size;
  FT_RETURN_IF_ERROR(load_norms(base, form, layer));
  FT_RETURN_IF_ERROR(load_attention(base + "self_attn.", layer));
  FT_RETURN_IF_ERROR(load_mlp(base + "mlp.", layer));
  // Older exports store this buffer; it follows from the config.
  loader_.ignore(base + "self_attn.rotary_emb.inv_freq");
  return {};
}

Status LayerLoader::load_norm(const std::string& name, int32_t size, const float** out) {
  const TensorPart part[] = {{name, size}};
  const float offset = traits_.offset_norms ? 1.0f : 0.0f;
  FT_ASSIGN_OR_RETURN(*out, loader_.vector(arena_, part, 1 - offset, offset));
  return {};
}

Status LayerLoader::load_norms(const std::string& base, const LayerForm& form,
                               DecoderLayerWeights* layer) {
  const int32_t hidden = config_.hidden_size;
  const bool post = traits_.post_norms;
  if (form.input_norm) {
    FT_RETURN_IF_ERROR(load_norm(base + "input_layernorm.weight", hidden, &layer->input_norm));
  }
  FT_RETURN_IF_ERROR(load_norm(base + "post_attention_layernorm.weight", hidden,
                               post ? &layer->attention_post_norm : &layer->mlp_norm));
  if (!post) return {};
  FT_RETURN_IF_ERROR(
      load_norm(base + "pre_feedforward_layernorm.weight", hidden, &layer->mlp_norm));
  return load_norm(base + "post_feedforward_layernorm.weight", hidden, &layer->mlp_post_norm);
}

Status LayerLoader::load_attention(const std::string& base, DecoderLayerWeights* layer) {
  const int64_t q = int64_t{config_.num_heads} * config_.head_dim;
  const bool bias = config_.attention_bias || traits_.qkv_bias;
  FT_RETURN_IF_ERROR(
      load_linear(qkv_parts(base), layer->attention_inputs, bias, &layer->qkv, &layer->qkv_bias));
  if (traits_.qk_norm) {
    const int32_t dim = config_.head_dim;
    FT_RETURN_IF_ERROR(load_norm(base + "q_norm.weight", dim, &layer->q_norm));
    FT_RETURN_IF_ERROR(load_norm(base + "k_norm.weight", dim, &layer->k_norm));
  }
  return load_summed(base + "o_proj", q, bias && !traits_.qkv_bias, &layer->o, &layer->o_bias);
}

// Of the rank's heads.
std::vector<TensorPart> LayerLoader::qkv_parts(const std::string& base) const {
  const int64_t dim = config_.head_dim;
  const int64_t q = config_.num_heads * dim, kv = config_.num_kv_heads * dim;
  const ShardRange heads = shard_of(config_.num_heads, sharding_);
  const ShardRange kv_heads = shard_of_kv_heads(config_.num_kv_heads, sharding_);
  const int64_t first = heads.begin * dim, rows = heads.count * dim;
  const int64_t kv_first = kv_heads.begin * dim, kv_rows = kv_heads.count * dim;
  if (!traits_.fused_projections) {
    return {{base + "q_proj", q, first, rows},
            {base + "k_proj", kv, kv_first, kv_rows},
            {base + "v_proj", kv, kv_first, kv_rows}};
  }
  const std::string name = base + "qkv_proj";
  const int64_t all = q + 2 * kv;
  if (!sharding_.is_cut()) return {{name, all}};
  return {{name, all, first, rows},
          {name, all, q + kv_first, kv_rows},
          {name, all, q + kv + kv_first, kv_rows}};
}

Status LayerLoader::load_mlp(const std::string& base, DecoderLayerWeights* layer) {
  using Parts = std::vector<TensorPart>;
  const int64_t inner = config_.intermediate_size;
  const ShardRange own = shard_of(inner, sharding_);
  const std::string fused = base + "gate_up_proj";
  const Parts gate_up =
      !traits_.fused_projections ? Parts{{base + "gate_proj", inner, own.begin, own.count},
                                         {base + "up_proj", inner, own.begin, own.count}}
      : sharding_.is_cut()       ? Parts{{fused, 2 * inner, own.begin, own.count},
                                         {fused, 2 * inner, inner + own.begin, own.count}}
                                 : Parts{{fused, 2 * inner}};
  FT_RETURN_IF_ERROR(load_linear(gate_up, config_.hidden_size, config_.mlp_bias, &layer->gate_up,
                                 &layer->gate_up_bias, WeightOrder::kGateUp));
  return load_summed(base + "down_proj", inner, config_.mlp_bias, &layer->down, &layer->down_bias);
}

Status LayerLoader::load_summed(const std::string& name, int64_t inputs, bool has_bias,
                                PackedWeight* weight, const float** bias) {
  const ShardRange own = shard_of(inputs, sharding_);
  if (has_bias && sharding_.rank > 0) loader_.ignore(name + ".bias");
  return load_columns({{name, config_.hidden_size}}, {inputs, own.begin, own.count},
                      has_bias && sharding_.rank == 0, weight, bias, WeightOrder::kPlain);
}

Status LayerLoader::load_columns(std::vector<TensorPart> parts, const ColumnRange& cols,
                                 bool has_bias, PackedWeight* weight, const float** bias,
                                 WeightOrder order) {
  std::vector<TensorPart> biases = parts;
  for (TensorPart& part : parts) part.name += ".weight";
  FT_ASSIGN_OR_RETURN(*weight, loader_.matrix(parts, cols, order));
  if (!has_bias) return {};
  for (TensorPart& part : biases) part.name += ".bias";
  FT_ASSIGN_OR_RETURN(*bias, loader_.vector(arena_, biases, 0));
  return {};
}

namespace {

double layer_weights(const ModelConfig& config, const DecoderTraits& traits) {
  const double hidden = config.hidden_size, inner = config.intermediate_size;
  const double q = double(config.num_heads) * config.head_dim;
  const double kv = double(config.num_kv_heads) * config.head_dim;
  double layer = (q + 2 * kv) * hidden + q * hidden + 3 * inner * hidden + 2 * hidden;
  if (config.attention_bias || traits.qkv_bias) layer += q + 2 * kv;
  if (config.attention_bias && !traits.qkv_bias) layer += hidden;
  if (config.mlp_bias) layer += 2 * inner + hidden;
  if (traits.qk_norm) layer += 2 * double(config.head_dim);
  if (traits.post_norms) layer += 2 * hidden;
  return layer;
}

// The largest where it is larger.
int64_t whole_number(double value) {
  return value < 9e18 ? static_cast<int64_t>(value) : INT64_MAX;
}

std::string embedding_name(const DecoderTraits::Place& place) {
  return std::string(place.body) + "embed_tokens.weight";
}

}  // namespace

DecoderTraits::Place find_place(const DecoderTraits& traits, const WeightLoader& loader) {
  for (const DecoderTraits::Place& place : traits.places) {
    if (place.body != nullptr && loader.has(embedding_name(place))) return place;
  }
  return traits.places[0];
}

std::string output_matrix_name(const ModelConfig& config, const DecoderTraits::Place& place) {
  if (!config.tie_word_embeddings) return place.head;
  return embedding_name(place);
}

int64_t num_decoder_weights(const ModelConfig& config, const DecoderTraits& traits) {
  const double hidden = config.hidden_size;
  const double matrix = double(config.vocab_size) * hidden;
  const double outside = (config.tie_word_embeddings ? 1 : 2) * matrix + hidden;
  return whole_number(outside + config.num_layers * layer_weights(config, traits));
}

int64_t decoder_weight_bytes(const ModelConfig& config, const DecoderTraits& traits,
                             const Sharding& sharding, const Stages& stages) {
  const double hidden = config.hidden_size;
  const ColumnPart own = column_part(config.vocab_size, sharding.rank, sharding.size);
  double count =
      static_cast<double>(stages.layers(config.num_layers).count) * layer_weights(config, traits);
  if (stages.is_first()) count += double(config.vocab_size) * hidden;
  // A tied head is packed beside the table.
  if (stages.is_last()) count += double(own.count) * hidden + hidden;
  return whole_number(count * static_cast<double>(dtype_size(config.dtype)));
}

bool stage_packs(const Stages& stages, int32_t num_layers, const std::string& name) {
  constexpr std::string_view kLayers = "layers.";
  const size_t at = name.find(kLayers);
  if (at == std::string::npos) return stages.is_last();
  const int32_t layer = std::atoi(name.c_str() + at + kLayers.size());
  return layer < num_layers && stages.owns(layer, num_layers);
}

Result<DecoderWeights> load_decoder_weights(Arena& arena, const ModelConfig& config,
                                            const DecoderTraits& traits, WeightLoader& loader,
                                            const Sharding& sharding, const Stages& stages) {
  const DecoderTraits::Place place = find_place(traits, loader);
  const std::string body = place.body;
  for (const char* other : traits.ignored) loader.ignore_all(other);
  // Draft modules in the target's own files; draft_head.h reads them.
  for (int32_t i = 0; i < config.num_mtp_modules; ++i) {
    loader.ignore_all(body + "layers." + std::to_string(config.num_layers + i) + ".");
  }

  DecoderWeights weights;
  WeightLoader::Guard guard(loader);
  const int64_t table[] = {config.vocab_size, config.hidden_size};
  if (stages.is_first()) {
    FT_ASSIGN_OR_RETURN(weights.embedding,
                        loader.table(arena, embedding_name(place), table[0], table[1]));
  } else {
    FT_RETURN_IF_ERROR(loader.expect(embedding_name(place), table));
  }
  LayerLoader layers(arena, config, traits, loader, sharding);
  weights.layers.resize(static_cast<size_t>(config.num_layers));
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const std::string base = body + "layers." + std::to_string(i) + ".";
    if (!stages.owns(static_cast<int32_t>(i), config.num_layers)) {
      loader.ignore_all(base);
      continue;
    }
    FT_RETURN_IF_ERROR(layers.load(base, {}, &weights.layers[i]));
  }
  const std::string norm = body + "norm.weight", head = output_matrix_name(config, place);
  if (stages.is_last()) {
    FT_RETURN_IF_ERROR(layers.load_norm(norm, config.hidden_size, &weights.final_norm));
    const ColumnPart own = column_part(config.vocab_size, sharding.rank, sharding.size);
    const TensorPart part[] = {{head, config.vocab_size, own.begin, own.count}};
    FT_ASSIGN_OR_RETURN(weights.head, loader.matrix(part, config.hidden_size));
  } else {
    FT_RETURN_IF_ERROR(loader.expect(norm, {&table[1], 1}));
    FT_RETURN_IF_ERROR(loader.expect(head, table));
  }
  if (config.tie_word_embeddings) loader.ignore(place.head);
  FT_RETURN_IF_ERROR(guard.finish());
  return weights;
}

Result<const void*> load_embedding(Device& device, Arena& arena, const ModelFiles* files,
                                   const ModelConfig& config, const DecoderTraits& traits) {
  std::optional<Checkpoint> checkpoint;
  if (files != nullptr) {
    FT_ASSIGN_OR_RETURN(checkpoint, Checkpoint::open(*files));
  }
  const int64_t bytes = int64_t{config.vocab_size} * config.hidden_size *
                        static_cast<int64_t>(dtype_size(config.dtype));
  FT_ASSIGN_OR_RETURN(const auto loader,
                      WeightLoader::create(device, checkpoint ? &*checkpoint : nullptr,
                                           config.dtype, bytes, {}, nullptr));
  const std::string name = embedding_name(find_place(traits, *loader));
  WeightLoader::Guard guard(*loader);
  FT_ASSIGN_OR_RETURN(const void* table,
                      loader->table(arena, name, config.vocab_size, config.hidden_size));
  FT_RETURN_IF_ERROR(guard.finish());
  return table;
}

}  // namespace foretoken
