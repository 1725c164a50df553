#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr double kMultiple = 256;  // that widths of MLPs are rounded up to
constexpr double kMaxInner = 1 << 24;

// A field of an object that may be no object; null where it is missing.
const Json* inside(const Json& object, const char* part, const char* name) {
  const auto found = object.is_object() ? object.find(part) : object.end();
  if (found == object.end() || !found->is_object()) return nullptr;
  const auto field = found->find(name);
  return field == found->end() || field->is_null() ? nullptr : &*field;
}

bool is_set(const Json& block, const char* part, const char* name) {
  const Json* field = inside(block, part, name);
  return field != nullptr && *field != false;
}

// What a search for architectures may leave in a block that no layer here does.
const char* unread_part(const Json& block) {
  if (is_set(block, "attention", "replace_with_linear")) return "attention of one matrix";
  if (is_set(block, "ffn", "replace_with_linear")) return "an MLP of one matrix";
  if (is_set(block, "attention", "num_sink_tokens")) return "attention sinks";
  if (is_set(block, "attention", "window_length")) return "a window of a layer's own";
  if (is_set(block, "attention", "sparsify") || is_set(block, "ffn", "sparsify")) {
    return "sparse parts";
  }
  return nullptr;
}

// Two thirds of the multiple of hidden_size, rounded up; 0: the field is missing or wrong.
int32_t inner_size(const Json& block, double hidden) {
  const Json* mult = inside(block, "ffn", "ffn_mult");
  if (mult == nullptr || !mult->is_number()) return 0;
  const double whole = std::floor(2 * mult->get<double>() * hidden / 3);
  if (!(whole > 0) || whole > kMaxInner) return 0;
  return static_cast<int32_t>(std::ceil(whole / kMultiple) * kMultiple);
}

int32_t heads_in_group(const Json& block) {
  const Json* group = inside(block, "attention", "n_heads_in_group");
  return group == nullptr || !group->is_number_integer() ? 0 : group->get<int32_t>();
}

Status wrong_block(const ConfigFields& fields, size_t layer, const char* what) {
  return invalid_argument(fields.where() + ": 'block_configs' of layer " + std::to_string(layer) +
                          " has no readable '" + what + "'; correct the file");
}

Status read_block(const ConfigFields& fields, const Json& block, size_t index, int32_t num_heads,
                  double hidden, LayerConfig* layer) {
  if (const char* part = unread_part(block)) {
    return unsupported(fields.where() + ": layer " + std::to_string(index) + " of block_configs " +
                       "needs " + part + ", which is not supported; use another model");
  }
  layer->attention = !is_set(block, "attention", "no_op");
  layer->feed_forward = !is_set(block, "ffn", "no_op");
  if (layer->attention) {
    const int32_t group = heads_in_group(block);
    if (group < 1 || num_heads % group != 0) return wrong_block(fields, index, "n_heads_in_group");
    layer->num_kv_heads = num_heads / group;
  }
  if (layer->feed_forward) {
    layer->intermediate_size = inner_size(block, hidden);
    if (layer->intermediate_size == 0) return wrong_block(fields, index, "ffn_mult");
  }
  return {};
}

Status find_blocks(const ConfigFields& fields, const Json** out) {
  *out = fields.find("block_configs");
  if (*out == nullptr) return fields.missing("block_configs");
  int32_t num_layers = 0;
  FT_RETURN_IF_ERROR(fields.need_count("num_hidden_layers", &num_layers));
  if ((*out)->is_array() && (*out)->size() == static_cast<size_t>(num_layers)) return {};
  return invalid_argument(fields.where() + ": 'block_configs' must be a list of " +
                          std::to_string(num_layers) + " layers; correct the file");
}

// Files have null where layers differ: the widest layer stands for the model.
Status translate_deci(const ConfigFields& fields, Json* json) {
  const Json* blocks = nullptr;
  int32_t num_heads = 0, hidden = 0, inner = 1, kv_heads = 1;
  FT_RETURN_IF_ERROR(find_blocks(fields, &blocks));
  FT_RETURN_IF_ERROR(fields.need_count("num_attention_heads", &num_heads));
  FT_RETURN_IF_ERROR(fields.need_count("hidden_size", &hidden));
  for (size_t i = 0; i < blocks->size(); ++i) {
    LayerConfig layer;
    FT_RETURN_IF_ERROR(read_block(fields, (*blocks)[i], i, num_heads, hidden, &layer));
    inner = std::max(inner, layer.intermediate_size);
    kv_heads = std::max(kv_heads, layer.num_kv_heads);
  }
  (*json)["intermediate_size"] = inner;
  (*json)["num_key_value_heads"] = kv_heads;
  return {};
}

Status read_deci(const ConfigFields& fields, ModelConfig* config) {
  const Json* blocks = nullptr;
  FT_RETURN_IF_ERROR(find_blocks(fields, &blocks));
  for (size_t i = 0; i < config->layers.size(); ++i) {
    FT_RETURN_IF_ERROR(read_block(fields, (*blocks)[i], i, config->num_heads, config->hidden_size,
                                  &config->layers[i]));
  }
  return {};
}

LayerSpec deci_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = llama_layer(config, layer);
  if (!layer.attention) {
    spec.mixer_norm = nullptr;
    spec.mixer = Absent{};
  }
  if (!layer.feed_forward) {
    spec.feed_forward_norm = nullptr;
    spec.feed_forward = Absent{};
  }
  return spec;
}

}  // namespace

// Bercovich et al. 2024: Llama's blocks with sizes that a search chose for each layer, and parts
// left out.
constinit const Architecture kDeciArchitecture = {
    .name = "DeciLMForCausalLM",
    .description = "Llama Nemotron Super and Ultra",
    .defaults = R"({"max_position_embeddings": 131072})",
    .decoder = {.layer = deci_layer},
    .translate = translate_deci,
    .read = read_deci,
};

}  // namespace foretoken
