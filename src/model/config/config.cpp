#include "model/config/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "base/files/python_json.h"
#include "base/log.h"
#include "gguf/hf_config.h"
#include "gguf/model_texts.h"
#include "kernels/attention/rope_kv.h"
#include "model/config/architecture.h"
#include "model/config/config_fields.h"
#include "model/config/config_overrides.h"
#include "model/config/families.h"
#include "model/config/model_types.h"
#include "model/config/settled_fields.h"
#include "model/config/text_part.h"
#include "model/files/containers/json_file.h"
#include "model/files/forms/quantization.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Of attention whose keys and values lie apart.
constexpr int32_t kMaxPlainHeadDim = 512;
// Keeps every row count of a fused matrix within 32 bits.
constexpr int64_t kMaxMatrixRows = int64_t{1} << 30;

Status read_architecture(const Json& file, const ConfigFields& fields, const Architecture** out) {
  const Json* names = fields.find("architectures");
  if (names != nullptr && names->is_array() && names->empty()) names = nullptr;
  const Json* type = fields.find("model_type");
  Json of_type;
  if (names == nullptr && type != nullptr && type->is_string()) {
    // As transformers chooses a class for such files.
    const char* found = architecture_of_model_type(type->get_ref<const std::string&>());
    if (found == nullptr) {
      return unsupported(fields.where() + ": model_type " + type->dump().substr(0, 80) +
                         " is not known and 'architectures' is missing" +
                         known_model_types_hint(type->get_ref<const std::string&>()));
    }
    of_type = Json::array({found});
    names = &of_type;
  }
  const bool are_names =
      names != nullptr && names->is_array() && !names->empty() &&
      std::all_of(names->begin(), names->end(), [](const Json& name) { return name.is_string(); });
  if (!are_names) {
    return invalid_argument(fields.where() + ": 'architectures' must be a list of a name" +
                            known_architectures_hint(""));
  }
  // Of several names the first that loads, as vLLM has it.
  for (const Json& name : *names) {
    *out = find_architecture(own_class_name(name.get<std::string>(), file));
    if (*out != nullptr) return {};
  }
  return refuse_architecture(own_class_name((*names)[0].get<std::string>(), file), file,
                             fields.where());
}

// Files of transformers before 4.52 have some models' decoder fields beside text_config's place.
bool has_text_inside(const Json& file, const Architecture& architecture) {
  return architecture.text_config &&
         (file.contains("text_config") || !file.contains("hidden_size"));
}

// Names of one number. Newer versions of transformers write others than the files that were
// published.
constexpr std::array<std::string_view, 4> kSameNumber[] = {
    {"n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"},
    {"num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk"}};

// Whether a file says a number under this name or another of it, so that no default counts.
bool says(const Json& file, std::string_view name) {
  if (file.contains(name)) return true;
  for (const auto& names : kSameNumber) {
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view other) { return file.contains(other); });
  }
  return false;
}

// The fields of the decoder: those of text_config where the architecture keeps them there, with
// what only the whole file has, under their common names, and the architecture's defaults for what
// is nowhere.
Result<Json> decoder_fields(const Json& file, const Architecture& architecture,
                            const ConfigFields& fields) {
  Json json = file;
  if (has_text_inside(file, architecture)) {
    const Json* text = fields.find("text_config");
    if (text == nullptr) return fields.missing("text_config");
    if (!text->is_object()) return fields.wrong("text_config", "an object");
    json = *text;
    for (const char* name : {"eos_token_id", "dtype", "torch_dtype", "tie_word_embeddings",
                             "quantization_config", "is_causal"}) {
      if (!json.contains(name) && file.contains(name)) json[name] = file[name];
    }
  }
  const Json defaults = Json::parse(architecture.defaults);
  for (const auto& [name, value] : defaults.items()) {
    if (!says(json, name)) json[name] = value;
  }
  if (architecture.translate != nullptr) {
    const Json before = json;
    FT_RETURN_IF_ERROR(architecture.translate(fields.of(before), &json));
  }
  return json;
}

struct ActivationEntry {
  const char* name;
  Activation activation;
};
constexpr ActivationEntry kActivations[] = {
    {"silu", Activation::kSilu},
    {"gelu", Activation::kGelu},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_new", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh},
    {"swish", Activation::kSilu},
    {"relu2", Activation::kReluSquared},
    {"xielu", Activation::kXielu},
    {"relu", Activation::kRelu},
    {"situ", Activation::kSitu},
};

// Gemma's hidden_activation goes before the hidden_act that some of its files have too.
Status read_activation(const ConfigFields& fields, Activation* out) {
  const bool gemma = fields.find("hidden_activation") != nullptr;
  const char* name = gemma ? "hidden_activation" : "hidden_act";
  const Json* value = fields.find(name);
  if (value == nullptr) return {};
  std::string known;
  for (const ActivationEntry& entry : kActivations) {
    if (*value == entry.name) {
      *out = entry.activation;
      return {};
    }
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return unsupported(fields.where() + ": " + name + " " + value->dump().substr(0, 80) +
                     " is not supported; supported: " + known);
}

// How rows are rounded and what they see.
Status read_row_rules(const Json& json, const ConfigFields& fields, ModelConfig* out) {
  FT_ASSIGN_OR_RETURN(const auto quantization, read_quantization(json, fields.where()));
  out->rounds_to_int8 = quantization.has_value() && quantization->rounds_to_int8;
  const Json* causal = fields.find("is_causal");
  // "vision": among the tokens of an image, which prompts here do not have.
  const Json* both = fields.find("use_bidirectional_attention");
  out->bidirectional = (causal != nullptr && *causal == false) ||
                       (both != nullptr && *both != false && *both != "vision");
  return {};
}

Status read_eos(const ConfigFields& fields, std::vector<int32_t>* out) {
  const Json* value = fields.find("eos_token_id");
  if (value == nullptr) return {};
  std::optional<std::vector<int32_t>> ids = read_token_ids(*value);
  if (!ids) return fields.wrong("eos_token_id", "a token id or a list of token ids");
  *out = std::move(*ids);
  return {};
}

// There is no arithmetic of float16: as with auto, whose types hold all that such weights do.
bool is_half(const std::string& dtype) { return dtype == "half" || dtype == "float16"; }

Status read_dtype(const ConfigFields& fields, const std::string& wanted, DType* out) {
  if (wanted == "float32" || wanted == "float") {
    *out = DType::kF32;
    return {};
  }
  if (wanted == "bfloat16") {
    *out = DType::kBF16;
    return {};
  }
  if (wanted != "auto" && !is_half(wanted)) {
    return unsupported("--dtype " + wanted + " is not supported; use auto, float32 or bfloat16");
  }
  const Json* value = fields.find("dtype");
  if (value == nullptr) value = fields.find("torch_dtype");
  const Json name = value == nullptr || *value == "auto" ? Json("float32") : *value;
  std::string_view plain;
  if (name.is_string()) plain = name.get_ref<const std::string&>();
  if (plain.starts_with("torch.")) plain.remove_prefix(std::string_view("torch.").size());
  if (plain == "bfloat16") {
    *out = DType::kBF16;
  } else if (plain == "float32" || plain == "float" || plain == "float16" || plain == "half") {
    *out = DType::kF32;
  } else {
    return unsupported(fields.where() + ": dtype " + name.dump() +
                       " is not supported; choose with --dtype float32 or --dtype bfloat16");
  }
  return {};
}

Status read_sizes(const ConfigFields& fields, ModelConfig* out) {
  FT_RETURN_IF_ERROR(fields.need_count("vocab_size", &out->vocab_size));
  FT_RETURN_IF_ERROR(fields.need_count("hidden_size", &out->hidden_size));
  FT_RETURN_IF_ERROR(fields.need_count("intermediate_size", &out->intermediate_size));
  FT_RETURN_IF_ERROR(fields.need_count("num_hidden_layers", &out->num_layers));
  FT_RETURN_IF_ERROR(fields.need_count("num_attention_heads", &out->num_heads));
  FT_RETURN_IF_ERROR(fields.need_count("max_position_embeddings", &out->max_position_embeddings));
  FT_ASSIGN_OR_RETURN(out->latent, read_latent_config(fields));
  if (out->latent.exists()) {  // all heads share one entry of a position
    out->num_kv_heads = 1;
    out->head_dim = out->latent.entry_dim();
    return {};
  }
  out->num_kv_heads = out->num_heads;
  FT_RETURN_IF_ERROR(fields.read_count("num_key_value_heads", &out->num_kv_heads));
  if (fields.find("head_dim") == nullptr && out->hidden_size % out->num_heads != 0) {
    return invalid_argument(fields.where() + ": hidden_size " + std::to_string(out->hidden_size) +
                            " is not a multiple of num_attention_heads " +
                            std::to_string(out->num_heads) + "; set 'head_dim'");
  }
  out->head_dim = out->hidden_size / out->num_heads;
  return fields.read_count("head_dim", &out->head_dim);
}

Status check_sizes(const ModelConfig& config, const std::string& where) {
  if (config.num_heads % config.num_kv_heads != 0) {
    return invalid_argument(where + ": num_attention_heads " + std::to_string(config.num_heads) +
                            " is not a multiple of num_key_value_heads " +
                            std::to_string(config.num_kv_heads) + "; correct the file");
  }
  if (config.head_dim % 2 != 0) {
    return invalid_argument(where + ": head_dim " + std::to_string(config.head_dim) +
                            " is odd, but rotary embeddings need an even one; correct the file");
  }
  if (!config.latent.exists() && config.head_dim > kMaxPlainHeadDim) {
    return unsupported(where + ": head_dim " + std::to_string(config.head_dim) +
                       " is not supported; the largest is " + std::to_string(kMaxPlainHeadDim));
  }
  const int64_t qkv_rows =
      (int64_t{config.num_heads} + 2 * int64_t{config.num_kv_heads}) * config.head_dim;
  if (qkv_rows > kMaxMatrixRows || 2 * int64_t{config.intermediate_size} > kMaxMatrixRows) {
    return invalid_argument(where + ": the layers are wider than " +
                            std::to_string(kMaxMatrixRows) + " rows; correct the sizes");
  }
  return {};
}

// Of layers that have sizes of their own.
Status check_layer_sizes(const ModelConfig& config, const std::string& where) {
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const LayerConfig& layer = config.layers[i];
    if (layer.num_heads + layer.num_kv_heads + layer.head_dim + layer.intermediate_size == 0) {
      continue;
    }
    ModelConfig one;
    one.num_heads = config.num_heads;
    one.num_kv_heads = config.num_kv_heads;
    one.head_dim = config.head_dim;
    one.intermediate_size = config.intermediate_size;
    one.latent = config.latent;
    if (layer.num_heads > 0) one.num_heads = layer.num_heads;
    if (layer.num_kv_heads > 0) one.num_kv_heads = layer.num_kv_heads;
    if (layer.head_dim > 0) one.head_dim = layer.head_dim;
    if (layer.intermediate_size > 0) one.intermediate_size = layer.intermediate_size;
    FT_RETURN_IF_ERROR(check_sizes(one, where + " (layer " + std::to_string(i) + ")"));
  }
  return {};
}

Status read_model_numbers(const ConfigFields& fields, ModelConfig* out) {
  double eps = 1e-6, query_scalar = out->head_dim, attention_cap = 0, logits_cap = 0;
  // The last one that is there counts.
  for (const char* name : {"layernorm_epsilon", "norm_epsilon", "norm_eps", "layer_norm_epsilon",
                           "layer_norm_eps", "rms_norm_eps"}) {
    FT_RETURN_IF_ERROR(fields.read_positive(name, &eps));
  }
  FT_RETURN_IF_ERROR(fields.read_positive("query_pre_attn_scalar", &query_scalar));
  FT_RETURN_IF_ERROR(fields.read_positive("attn_logit_softcapping", &attention_cap));
  FT_RETURN_IF_ERROR(fields.read_positive("final_logit_softcapping", &logits_cap));
  out->rms_norm_eps = static_cast<float>(eps);
  out->attention_scale = static_cast<float>(1 / std::sqrt(query_scalar));
  out->attention_softcap = static_cast<float>(attention_cap);
  out->logits_softcap = static_cast<float>(logits_cap);
  FT_RETURN_IF_ERROR(fields.read_flag("tie_word_embeddings", &out->tie_word_embeddings));
  FT_RETURN_IF_ERROR(fields.read_flag("attention_bias", &out->attention_bias));
  out->attention_out_bias = out->attention_bias;
  FT_RETURN_IF_ERROR(fields.read_flag("attention_out_bias", &out->attention_out_bias));
  FT_RETURN_IF_ERROR(fields.read_flag("plain_matrices", &out->plain_matrices));
  FT_RETURN_IF_ERROR(fields.read_flag("is_text_part", &out->is_text_part));
  return fields.read_flag("mlp_bias", &out->mlp_bias);
}

// Ids that cannot come end nothing: files of cut vocabularies keep those of the whole one, and -1
// is some tools' way to say that there is none.
void drop_foreign_ends(const std::string& where, ModelConfig* config) {
  static std::mutex mutex;
  static std::set<std::string> said;  // a model's files are read more than once
  std::erase_if(config->eos_token_ids, [&](int32_t id) {
    const bool foreign = id < 0 || id >= config->vocab_size;
    if (foreign && id >= 0) {
      const std::string text = where + ": eos_token_id " + std::to_string(id) +
                               " lies outside the vocabulary of " +
                               std::to_string(config->vocab_size) + " and ends no text";
      const std::lock_guard lock(mutex);
      if (said.insert(text).second) FT_LOG(warn, "{}", text);
    }
    return foreign;
  });
}

// Beside the file that is named `where`; GGUF files hold both.
std::string name_of_generation_config(const std::string& where) {
  constexpr std::string_view kConfig = "config.json";
  if (!where.ends_with(kConfig)) return where;
  return where.substr(0, where.size() - kConfig.size()) + "generation_config.json";
}

// Ends of either file, the second of which goes before the first. The one that stands for a missing
// one may lie outside of a smaller vocabulary.
Status read_ends(const ConfigFields& fields, const Json& generation_json, int32_t default_end,
                 ModelConfig* config) {
  const ConfigFields generation(generation_json, name_of_generation_config(fields.where()));
  for (const ConfigFields* file : {&fields, &generation}) {
    if (file->find("eos_token_id") == nullptr) continue;
    FT_RETURN_IF_ERROR(read_eos(*file, &config->eos_token_ids));
    if (default_end >= config->vocab_size) std::erase(config->eos_token_ids, default_end);
    drop_foreign_ends(file->where(), config);
  }
  return {};
}

// Of latent attention all of qk_rope_head_dim turns, whatever part of a head that is.
Json without_rotary_part(Json json) {
  json.erase("partial_rotary_factor");
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    if (json.contains(name) && json[name].is_object()) json[name].erase("partial_rotary_factor");
  }
  return json;
}

Status read_model_rope(const Json& json, const ConfigFields& whole, ModelConfig* out) {
  const LatentConfig& latent = out->latent;
  const Json own = latent.exists() ? without_rotary_part(json) : json;
  const ConfigFields fields = whole.of(own);
  const int32_t turning = latent.exists() ? latent.rope_dim : out->head_dim;
  RopeHeads heads{turning, turning};
  FT_RETURN_IF_ERROR(fields.read_count("global_head_dim", &heads.full));
  FT_ASSIGN_OR_RETURN(out->rope, read_rope_configs(fields, heads, out->max_position_embeddings));
  if (!latent.exists()) return {};
  FT_ASSIGN_OR_RETURN(out->attention_scale, read_latent_scale(fields, latent, out->rope.full));
  return {};
}

Result<Json> with_options(const Json& file, const ConfigOptions& options) {
  if (options.hf_overrides.empty()) return file;
  const auto overrides = parse_python_json_object(options.hf_overrides, "--hf-overrides");
  if (overrides.ok()) return with_overrides(file, text_overrides(file, overrides.value()));
  return invalid_argument(overrides.status().message() +
                          "; write it like '{\"rope_theta\": 1000000}'");
}

// Models that were trained to embed may see the tokens behind each, too, by attention.
Status check_direction(const ModelConfig& config, const std::string& where) {
  const auto attends = [&](const LayerConfig& layer) {
    const bool sees = layer.window == 0 || config.both_ways_windows;
    return layer.attention && sees && !layer.recurrent && layer.compress <= 1;
  };
  const bool all = !config.is_sparse() && config.attention_chunk == 0 &&
                   std::all_of(config.layers.begin(), config.layers.end(), attends);
  if (!config.bidirectional || all) return {};
  return unsupported(where +
                     ": attention to later tokens is not supported in layers with windows, an "
                     "indexer or a state; use a model whose layers attend to whole texts");
}

Result<ModelConfig> parse_decoder(const Architecture& architecture, const Json& json,
                                  const Json& generation_json, const ConfigOptions& options,
                                  const std::string& where) {
  const ConfigFields fields(json, where, !options.is_drafters);
  ModelConfig config;
  config.architecture = architecture.name;
  FT_RETURN_IF_ERROR(read_row_rules(json, fields, &config));
  FT_RETURN_IF_ERROR(read_activation(fields, &config.activation));
  FT_RETURN_IF_ERROR(read_sizes(fields, &config));
  FT_RETURN_IF_ERROR(
      fields.read_count_or_none("num_nextn_predict_layers", &config.num_mtp_modules));
  FT_RETURN_IF_ERROR(check_sizes(config, where));
  FT_RETURN_IF_ERROR(read_model_numbers(fields, &config));
  FT_ASSIGN_OR_RETURN(
      config.layers,
      read_layer_configs(fields, architecture.window_rule, config.num_layers,
                         architecture.only_windows_turn, architecture.recurrent_type));
  FT_RETURN_IF_ERROR(read_model_rope(json, fields, &config));
  if (architecture.read != nullptr) {
    FT_RETURN_IF_ERROR(architecture.read(fields, &config));
    FT_RETURN_IF_ERROR(check_layer_sizes(config, where));
  }
  FT_RETURN_IF_ERROR(check_direction(config, where));
  config.max_context = config.rope.max_context;
  config.added_ids = options.added_ids;
  config.vocab_size += config.added_ids;
  FT_RETURN_IF_ERROR(read_ends(fields, generation_json, architecture.default_end, &config));
  FT_RETURN_IF_ERROR(read_dtype(fields, options.dtype, &config.dtype));
  return config;
}

}  // namespace

Result<ModelConfig> parse_model_config(const Json& file, const Json& generation_json,
                                       const ConfigOptions& options, const std::string& where) {
  FT_ASSIGN_OR_RETURN(const Json whole, with_options(file, options));
  FT_ASSIGN_OR_RETURN(const Json json, text_part_of(whole, where));
  const Architecture* architecture = nullptr;
  const ConfigFields fields(json, where, !options.is_drafters);
  FT_RETURN_IF_ERROR(read_architecture(json, fields, &architecture));
  FT_ASSIGN_OR_RETURN(const Json decoder, decoder_fields(json, *architecture, fields));
  return parse_decoder(*architecture, decoder, generation_json, options, where);
}

Result<ModelConfig> read_model_config(const ModelFiles& model, const ConfigOptions& options) {
  const std::filesystem::path& path = model.path();
  std::error_code ignored;
  if (!model.is_gguf() && !std::filesystem::is_directory(path, ignored)) {
    return not_found("model folder " + model.text() +
                     " does not exist; give the path of a folder with " +
                     "config.json, tokenizer.json and model.safetensors, or of a GGUF file");
  }
  const std::string where = model.is_gguf() ? model.text() : (path / "config.json").string();
  FT_ASSIGN_OR_RETURN(Json config, read_config_json(model));
  FT_ASSIGN_OR_RETURN(config, text_part_of(config, where));
  config = with_whole_class(model, std::move(config));
  config = with_mlx_weights(model, with_settled_head(model, std::move(config)));
  Json generation_config = Json::object();
  if (has_model_text(model, "generation_config.json")) {
    FT_ASSIGN_OR_RETURN(generation_config, read_model_json(model, "generation_config.json"));
  }
  Result<ModelConfig> parsed = parse_model_config(config, generation_config, options, where);
  if (parsed.ok() || !model.is_gguf()) return parsed;
  FT_ASSIGN_OR_RETURN(const auto file, model.gguf());
  return with_gguf_keys(*file, parsed.status());
}

}  // namespace foretoken
