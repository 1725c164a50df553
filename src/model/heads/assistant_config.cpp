#include "model/heads/assistant_config.h"

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/draft/cluster_logits.h"
#include "model/config/architecture.h"
#include "model/heads/chain_loader.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// The fields of its layers, as those of a whole model with keys and values of its own.
Json layer_fields(const Json& text, const Json& file) {
  Json json = text;
  json["architectures"] = {kGemma4Architecture.name};
  json["num_kv_shared_layers"] = 0;
  json.erase("vocab_size_per_layer_input");
  if (!json.contains("hidden_size_per_layer_input")) json["hidden_size_per_layer_input"] = 0;
  if (file.contains("tie_word_embeddings")) {
    json["tie_word_embeddings"] = file["tie_word_embeddings"];
  }
  return json;
}

Status read_clusters(const ConfigFields& fields, AssistantConfig* config) {
  bool ordered = false;
  FT_RETURN_IF_ERROR(fields.read_flag("use_ordered_embeddings", &ordered));
  if (!ordered) return {};
  config->clusters = 2048;
  config->top = 32;
  FT_RETURN_IF_ERROR(fields.read_count("num_centroids", &config->clusters));
  FT_RETURN_IF_ERROR(fields.read_count("centroid_intermediate_top_k", &config->top));
  const int32_t vocab = config->layer.vocab_size;
  if (config->clusters > ClusterLogitsArgs::kMaxClusters || vocab % config->clusters != 0) {
    return fields.wrong("num_centroids", "a divisor of vocab_size " + std::to_string(vocab) +
                                             ", at most " +
                                             std::to_string(ClusterLogitsArgs::kMaxClusters));
  }
  if (config->top <= config->clusters) return {};
  return fields.wrong("centroid_intermediate_top_k",
                      "at most num_centroids " + std::to_string(config->clusters));
}

// The attention of the last layer of the target with a window, or without one.
std::optional<GqaSpec> last_attention(const ModelConfig& target, bool windowed) {
  const Architecture* architecture = find_architecture(target.architecture);
  if (architecture == nullptr) return std::nullopt;
  const std::vector<LayerSpec> layers = compose_layers(target, architecture->decoder);
  for (size_t i = layers.size(); i-- > 0;) {
    const auto* attention = std::get_if<GqaSpec>(&layers[i].mixer);
    if (attention != nullptr && (attention->window > 0) == windowed) return *attention;
  }
  return std::nullopt;
}

// Heads of the assistant's layer must be those that the target keeps.
Status check_layer(const ConfigFields& fields, const ModelConfig& target, const GqaSpec& own) {
  const bool windowed = own.window > 0;
  const std::string kept =
      std::string("the target's layers with") + (windowed ? "" : "out") + " a sliding window";
  const std::string remedy = "; use an assistant that was made for this target";
  const std::optional<GqaSpec> read = last_attention(target, windowed);
  if (!read) {
    return invalid_argument(fields.where() + ": the assistant attends to keys and values of " +
                            kept + ", and " + target.architecture + " has none" + remedy);
  }
  const auto differs = [&](const char* name, int32_t have, int32_t want) {
    return invalid_argument(fields.where() + ": " + name + " " + std::to_string(have) +
                            " of the assistant is not " + std::to_string(want) + ", that of " +
                            kept + remedy);
  };
  if (own.num_kv_heads != read->num_kv_heads) {
    return differs("num_key_value_heads", own.num_kv_heads, read->num_kv_heads);
  }
  if (own.head_dim != read->head_dim) return differs("head_dim", own.head_dim, read->head_dim);
  return own.window == read->window ? Status()
                                    : differs("sliding_window", own.window, read->window);
}

// A target of which sizes alone are known has no layers.
Status check_layers(const ConfigFields& fields, const ModelConfig& target, const ModelConfig& own) {
  if (target.layers.empty()) return {};
  for (const LayerSpec& layer : compose_layers(own, kGemma4Architecture.decoder)) {
    FT_RETURN_IF_ERROR(check_layer(fields, target, std::get<GqaSpec>(layer.mixer)));
  }
  return {};
}

// As transformers wants it of an assistant.
Status check_plain(const ConfigFields& text, const ModelConfig& layer) {
  if (layer.layer_input_size > 0) return text.wrong("hidden_size_per_layer_input", "0");
  return layer.experts.count == 0 ? Status() : text.wrong("enable_moe_block", "false");
}

}  // namespace

Result<AssistantConfig> read_assistant_config(const std::string& folder,
                                              const ModelConfig& target) {
  FT_ASSIGN_OR_RETURN(const ChainConfig file, ChainConfig::read(folder));
  const ConfigFields fields(file.json, file.where, false);
  const Json* text = fields.find("text_config");
  if (text == nullptr) return fields.missing("text_config");
  if (!text->is_object()) return fields.wrong("text_config", "an object");
  ConfigOptions options;
  options.dtype = dtype_name(target.dtype);
  options.is_drafters = true;
  AssistantConfig config;
  FT_ASSIGN_OR_RETURN(config.layer,
                      parse_model_config(layer_fields(*text, file.json), Json::object(), options,
                                         file.where + " (text_config)"));
  FT_RETURN_IF_ERROR(check_plain(fields.of(*text, "text_config"), config.layer));
  for (LayerConfig& layer : config.layer.layers) layer.kv_of = 0;
  int32_t backbone = 1536;
  FT_RETURN_IF_ERROR(fields.read_count("backbone_hidden_size", &backbone));
  FT_RETURN_IF_ERROR(
      check_chain_size(fields, "backbone_hidden_size", backbone, target.hidden_size));
  FT_RETURN_IF_ERROR(
      check_chain_size(fields, "vocab_size", config.layer.vocab_size, target.own_ids()));
  FT_RETURN_IF_ERROR(read_clusters(fields, &config));
  FT_RETURN_IF_ERROR(check_layers(fields, target, config.layer));
  return config;
}

}  // namespace foretoken
