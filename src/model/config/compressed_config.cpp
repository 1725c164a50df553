#include "model/config/compressed_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "kernels/latent/compress_rows.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr const char* kChoosing = "compressed_sparse_attention";
constexpr const char* kPlain = "heavily_compressed_attention";
constexpr int32_t kChoosingRatio = 4;  // of published files, whose indexers have no other sign
constexpr int32_t kMaxListedLayers = 1 << 16;

// A list with an entry for each layer, of which there may be more, of draft modules.
Status find_list(const ConfigFields& fields, const char* name, int32_t layers, const Json** out) {
  *out = fields.find(name);
  if (*out == nullptr) return {};
  if ((*out)->is_array() && (*out)->size() >= static_cast<size_t>(layers)) return {};
  return fields.wrong(name, "a list with an entry for each layer");
}

// How many positions an entry of a kind of layers has.
Status rate_of(const ConfigFields& fields, const char* type, int32_t usual, int32_t* out) {
  *out = usual;
  const Json* rates = fields.find("compress_rates");
  if (rates == nullptr) return {};
  if (!rates->is_object()) return fields.wrong("compress_rates", "an object");
  return ConfigFields(*rates, fields.where() + " (compress_rates)").read_count(type, out);
}

Status take_types(const ConfigFields& fields, const Json& types, int32_t layers, Json* json) {
  int32_t choosing = 0, plain = 0;
  FT_RETURN_IF_ERROR(rate_of(fields, kChoosing, kChoosingRatio, &choosing));
  FT_RETURN_IF_ERROR(rate_of(fields, kPlain, 128, &plain));
  Json ratios = Json::array(), chooses = Json::array();
  for (int32_t i = 0; i < layers; ++i) {
    const Json& type = types[static_cast<size_t>(i)];
    if (type != kChoosing && type != kPlain && type != "sliding_attention") {
      return unsupported(fields.where() + ": layer type " + type.dump().substr(0, 80) +
                         " is not supported; supported: " + kChoosing + ", " + kPlain +
                         ", sliding_attention");
    }
    ratios.push_back(type == kChoosing ? choosing : type == kPlain ? plain : 0);
    chooses.push_back(type == kChoosing);
  }
  json->erase("layer_types");
  (*json)["compress_ratios"] = std::move(ratios);
  (*json)["chooses"] = std::move(chooses);
  return {};
}

Status take_ratios(const ConfigFields& fields, const Json& ratios, int32_t layers, Json* json) {
  Json chooses = Json::array();
  for (int32_t i = 0; i < layers; ++i) {
    const Json& ratio = ratios[static_cast<size_t>(i)];
    if (!ratio.is_number_integer() || ratio < 0 || ratio == 1 || ratio > 1 << 20) {
      return fields.wrong("compress_ratios", "a list of 0 or of numbers from 2 on");
    }
    chooses.push_back(ratio == kChoosingRatio);
  }
  (*json)["chooses"] = std::move(chooses);
  return {};
}

Status take_mixtures(const ConfigFields& fields, int32_t layers, Json* json) {
  const Json* types = nullptr;
  FT_RETURN_IF_ERROR(find_list(fields, "mlp_layer_types", layers, &types));
  int32_t first = types == nullptr ? 3 : 0;
  FT_RETURN_IF_ERROR(fields.read_count_or_none("num_hash_layers", &first));
  if (const Json* none = fields.find("num_hash_layers"); none != nullptr && *none == 0) first = 0;
  Json hashes = Json::array();
  for (int32_t i = 0; i < layers; ++i) {
    const Json type =
        types == nullptr ? Json(i < first ? "hash_moe" : "moe") : (*types)[static_cast<size_t>(i)];
    if (type != "hash_moe" && type != "moe") {
      return fields.wrong("mlp_layer_types", "a list of \"hash_moe\" or \"moe\"");
    }
    hashes.push_back(type == "hash_moe");
  }
  json->erase("mlp_layer_types");
  (*json)["hashes"] = std::move(hashes);
  return {};
}

// Layers that compress turn by a scaled embedding of their own, whose cosines stay as they are.
void take_ropes(const ConfigFields& fields, Json* json) {
  Json main = {{"rope_type", "default"}}, compress = Json::object();
  const Json* scaling = fields.find("rope_scaling");
  const Json* parameters = fields.find("rope_parameters");
  if (scaling == nullptr) scaling = parameters;
  const bool named = parameters != nullptr && parameters->is_object() &&
                     parameters->contains("main") && parameters->contains("compress");
  if (named) {
    main = (*parameters)["main"];
    compress = (*parameters)["compress"];
  } else if (scaling != nullptr && scaling->is_object()) {
    compress = *scaling;
  }
  const auto theta = [&](const char* name, Json* rope) {
    const Json* value = fields.find(name);
    if (rope->is_object() && value != nullptr && (!named || !rope->contains("rope_theta"))) {
      (*rope)["rope_theta"] = *value;
    }
  };
  theta("rope_theta", &main);
  theta("compress_rope_theta", &compress);
  if (compress.is_object()) {
    const bool is_yarn = compress.value("rope_type", compress.value("type", Json())) == "yarn";
    if (is_yarn && !compress.contains("attention_factor")) compress["attention_factor"] = 1.0;
  }
  json->erase("rope_scaling");
  (*json)["rope_parameters"] = {{"full_attention", compress}, {"sliding_attention", main}};
}

Status check_compressed_sizes(const ConfigFields& fields, const CompressedConfig& compressed,
                              int32_t head_dim, int32_t num_heads) {
  if (head_dim % 16 != 0 || head_dim > kMaxCompressedDim) {
    return unsupported(fields.where() + ": head_dim " + std::to_string(head_dim) +
                       " is not supported; it must be a multiple of 16 and at most " +
                       std::to_string(kMaxCompressedDim));
  }
  if (num_heads % compressed.groups != 0) {
    return invalid_argument(fields.where() + ": num_attention_heads " + std::to_string(num_heads) +
                            " is not a multiple of o_groups " + std::to_string(compressed.groups) +
                            "; correct the file");
  }
  if (compressed.o_rank % 16 == 0) return {};
  return unsupported(fields.where() + ": o_lora_rank " + std::to_string(compressed.o_rank) +
                     " is not supported; it must be a multiple of 16");
}

// The KV cache keeps entries of two lengths at most.
Status check_ratios(const ConfigFields& fields, const std::vector<LayerConfig>& layers) {
  std::vector<int32_t> ratios;
  for (const LayerConfig& layer : layers) {
    if (layer.compress == 0) continue;
    if (std::find(ratios.begin(), ratios.end(), layer.compress) == ratios.end()) {
      ratios.push_back(layer.compress);
    }
  }
  if (ratios.size() <= 2) return {};
  return unsupported(fields.where() + ": compress_ratios has " + std::to_string(ratios.size()) +
                     " lengths of compressed entries; the most are 2");
}

}  // namespace

Status translate_compressed(const ConfigFields& fields, Json* json) {
  int32_t layers = 0;
  FT_RETURN_IF_ERROR(fields.need_count("num_hidden_layers", &layers));
  if (layers > kMaxListedLayers) return fields.wrong("num_hidden_layers", "at most 2^16");
  const Json *types = nullptr, *ratios = nullptr;
  FT_RETURN_IF_ERROR(find_list(fields, "layer_types", layers, &types));
  FT_RETURN_IF_ERROR(find_list(fields, "compress_ratios", layers, &ratios));
  if (types == nullptr && ratios == nullptr) return fields.missing("compress_ratios");
  FT_RETURN_IF_ERROR(types != nullptr ? take_types(fields, *types, layers, json)
                                      : take_ratios(fields, *ratios, layers, json));
  FT_RETURN_IF_ERROR(take_mixtures(fields, layers, json));
  if (const Json* inner = fields.find("moe_intermediate_size"); inner != nullptr) {
    (*json)["intermediate_size"] = *inner;
  }
  int32_t head_dim = 0, rope_dim = 0;
  FT_RETURN_IF_ERROR(fields.need_count("head_dim", &head_dim));
  FT_RETURN_IF_ERROR(fields.read_count("qk_rope_head_dim", &rope_dim));
  if (rope_dim > 0) (*json)["partial_rotary_factor"] = double(rope_dim) / head_dim;
  take_ropes(fields, json);
  if (rope_dim == 0) return {};
  for (const char* name : {"full_attention", "sliding_attention"}) {
    Json& rope = (*json)["rope_parameters"][name];
    if (rope.is_object()) rope.erase("partial_rotary_factor");
  }
  return {};
}

Result<CompressedConfig> read_compressed_config(const ConfigFields& fields, int32_t head_dim,
                                                int32_t num_heads,
                                                std::vector<LayerConfig>* layers) {
  CompressedConfig compressed;
  double part = 0;
  FT_RETURN_IF_ERROR(fields.need_count("q_lora_rank", &compressed.q_rank));
  FT_RETURN_IF_ERROR(fields.need_count("o_groups", &compressed.groups));
  FT_RETURN_IF_ERROR(fields.need_count("o_lora_rank", &compressed.o_rank));
  FT_RETURN_IF_ERROR(fields.need_positive("partial_rotary_factor", &part));
  compressed.rope_dim = static_cast<int32_t>(std::lround(head_dim * std::min(part, 1.0)));
  FT_RETURN_IF_ERROR(check_compressed_sizes(fields, compressed, head_dim, num_heads));
  int32_t window = 0;
  FT_RETURN_IF_ERROR(fields.need_count("sliding_window", &window));
  bool any_chooses = false;
  for (size_t i = 0; i < layers->size(); ++i) {
    LayerConfig& layer = (*layers)[i];
    layer.window = window;
    layer.compress = (*fields.find("compress_ratios"))[i].get<int32_t>();
    layer.chooses = (*fields.find("chooses"))[i].get<bool>();
    layer.hashed = (*fields.find("hashes"))[i].get<bool>();
    any_chooses = any_chooses || layer.chooses;
  }
  FT_RETURN_IF_ERROR(check_ratios(fields, *layers));
  if (any_chooses) {
    FT_ASSIGN_OR_RETURN(compressed.index, read_index_config(fields, compressed.rope_dim));
    if (!compressed.index.exists()) return fields.missing("index_topk");
  }
  return compressed;
}

}  // namespace foretoken
