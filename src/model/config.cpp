#include "model/config.h"

#include <cmath>
#include <filesystem>

#include "kernels/rope_kv.h"
#include "model/json_file.h"
#include "model/registry.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Keeps every row count of a fused matrix within 32 bits.
constexpr int64_t kMaxMatrixRows = int64_t{1} << 30;

// A field that is there and not null.
const Json* find_field(const Json& config, const char* name) {
  const auto it = config.find(name);
  return it == config.end() || it->is_null() ? nullptr : &*it;
}

Status wrong_field(const std::string& where, const char* name, const Json& value,
                   const char* wanted) {
  return invalid_argument(where + ": '" + name + "' is " + value.dump().substr(0, 80) +
                          ", but must be " + wanted + "; correct the file");
}

// `fallback` < 0: the field must be there.
Status read_count(const Json& config, const std::string& where, const char* name, int64_t fallback,
                  int32_t* out) {
  const Json* value = find_field(config, name);
  if (value == nullptr) {
    if (fallback < 0) {
      return invalid_argument(where + ": '" + name + "' is missing; fetch the file again");
    }
    *out = static_cast<int32_t>(fallback);
    return {};
  }
  constexpr int64_t kMaxCount = 1 << 24;
  if (!value->is_number_integer() || value->get<int64_t>() < 1 ||
      value->get<int64_t>() > kMaxCount) {
    return wrong_field(where, name, *value, "an integer from 1 to 2^24");
  }
  *out = value->get<int32_t>();
  return {};
}

Status read_positive(const Json& config, const std::string& where, const char* name,
                     double fallback, float* out) {
  const Json* value = find_field(config, name);
  const double number = value == nullptr     ? fallback
                        : value->is_number() ? value->get<double>()
                                             : -1;
  if (!(number > 0) || !std::isfinite(static_cast<float>(number))) {
    return wrong_field(where, name, *value, "a positive number");
  }
  *out = static_cast<float>(number);
  return {};
}

Status read_flag(const Json& config, const std::string& where, const char* name, bool* out) {
  const Json* value = find_field(config, name);
  if (value == nullptr) return {};
  if (!value->is_boolean()) return wrong_field(where, name, *value, "true or false");
  *out = value->get<bool>();
  return {};
}

Status read_architecture(const Json& config, const std::string& where, std::string* out) {
  const Json* names = find_field(config, "architectures");
  if (names == nullptr || !names->is_array() || names->size() != 1 || !(*names)[0].is_string()) {
    return invalid_argument(
        where + ": 'architectures' must be a list of one name; supported: " + architecture_names());
  }
  *out = (*names)[0].get<std::string>();
  if (find_architecture(*out) == nullptr) {
    return unsupported(where + ": architecture '" + *out +
                       "' is not supported; supported: " + architecture_names());
  }
  return {};
}

Status check_only_supported_parts(const Json& config, const std::string& where) {
  if (find_field(config, "quantization_config") != nullptr) {
    return unsupported(where + ": quantised weights ('quantization_config') are not supported; " +
                       "use the unquantised model");
  }
  const Json* activation = find_field(config, "hidden_act");
  if (activation != nullptr && *activation != "silu") {
    return unsupported(where + ": hidden_act " + activation->dump() +
                       " is not supported; supported: \"silu\"");
  }
  return {};
}

// rope_theta and rope_scaling, or both inside rope_parameters (transformers 5).
Status read_rope(const Json& config, const std::string& where, ModelConfig* out) {
  const Json* parameters = find_field(config, "rope_parameters");
  const Json* scaling = parameters != nullptr ? parameters : find_field(config, "rope_scaling");
  if (scaling != nullptr) {
    if (!scaling->is_object()) {
      return wrong_field(where, parameters ? "rope_parameters" : "rope_scaling", *scaling,
                         "an object or null");
    }
    const Json* type = find_field(*scaling, "rope_type");
    if (type == nullptr) type = find_field(*scaling, "type");
    if (type != nullptr && *type != "default") {
      return unsupported(where + ": rope type " + type->dump() +
                         " is not supported; supported: \"default\"");
    }
  }
  const bool inside = parameters != nullptr && find_field(*parameters, "rope_theta") != nullptr;
  FT_RETURN_IF_ERROR(
      read_positive(inside ? *parameters : config, where, "rope_theta", 10000.0, &out->rope_theta));
  float partial = 1;
  for (const Json* source : {&config, parameters}) {
    if (source == nullptr) continue;
    FT_RETURN_IF_ERROR(read_positive(*source, where, "partial_rotary_factor", partial, &partial));
  }
  if (partial != 1) {
    return unsupported(where + ": partial_rotary_factor " + std::to_string(partial) +
                       " is not supported; supported: 1");
  }
  return {};
}

Status read_eos(const Json& config, const std::string& where, std::vector<int32_t>* out) {
  const Json* value = find_field(config, "eos_token_id");
  if (value == nullptr) return {};
  const Json list = value->is_array() ? *value : Json::array({*value});
  out->clear();
  for (const Json& id : list) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX) {
      return wrong_field(where, "eos_token_id", *value, "a token id or a list of token ids");
    }
    out->push_back(id.get<int32_t>());
  }
  return {};
}

Status read_dtype(const Json& config, const std::string& where, const std::string& wanted,
                  DType* out) {
  if (wanted == "float32" || wanted == "float") {
    *out = DType::kF32;
    return {};
  }
  if (wanted == "bfloat16") {
    *out = DType::kBF16;
    return {};
  }
  if (wanted != "auto") {
    return unsupported("--dtype " + wanted + " is not supported; use auto, float32 or bfloat16");
  }
  const Json* value = find_field(config, "dtype");
  if (value == nullptr) value = find_field(config, "torch_dtype");
  const Json name = value == nullptr ? Json("float32") : *value;
  if (name == "bfloat16" || name == "torch.bfloat16") {
    *out = DType::kBF16;
  } else if (name == "float32" || name == "torch.float32" || name == "float16" ||
             name == "torch.float16") {
    *out = DType::kF32;
  } else {
    return unsupported(where + ": dtype " + name.dump() +
                       " is not supported; choose with --dtype float32 or --dtype bfloat16");
  }
  return {};
}

Status check_shape(const ModelConfig& config, const std::string& where) {
  if (config.num_heads % config.num_kv_heads != 0) {
    return invalid_argument(where + ": num_attention_heads " + std::to_string(config.num_heads) +
                            " is not a multiple of num_key_value_heads " +
                            std::to_string(config.num_kv_heads) + "; correct the file");
  }
  if (config.head_dim % 2 != 0) {
    return invalid_argument(where + ": head_dim " + std::to_string(config.head_dim) +
                            " is odd, but rotary embeddings need an even one; correct the file");
  }
  if (config.head_dim > kMaxHeadDim) {
    return unsupported(where + ": head_dim " + std::to_string(config.head_dim) +
                       " is not supported; the largest is " + std::to_string(kMaxHeadDim));
  }
  const int64_t qkv_rows =
      (int64_t{config.num_heads} + 2 * int64_t{config.num_kv_heads}) * config.head_dim;
  if (qkv_rows > kMaxMatrixRows || 2 * int64_t{config.intermediate_size} > kMaxMatrixRows) {
    return invalid_argument(where + ": the layers are wider than " +
                            std::to_string(kMaxMatrixRows) + " rows; correct the sizes");
  }
  for (const int32_t id : config.eos_token_ids) {
    if (id >= config.vocab_size) {
      return invalid_argument(where + ": eos_token_id " + std::to_string(id) +
                              " lies outside the vocabulary of " +
                              std::to_string(config.vocab_size) + "; correct the file");
    }
  }
  return {};
}

}  // namespace

Result<ModelConfig> parse_model_config(const Json& json, const Json& generation_json,
                                       const std::string& dtype, const std::string& where) {
  ModelConfig config;
  FT_RETURN_IF_ERROR(read_architecture(json, where, &config.architecture));
  FT_RETURN_IF_ERROR(check_only_supported_parts(json, where));
  FT_RETURN_IF_ERROR(read_count(json, where, "vocab_size", -1, &config.vocab_size));
  FT_RETURN_IF_ERROR(read_count(json, where, "hidden_size", -1, &config.hidden_size));
  FT_RETURN_IF_ERROR(read_count(json, where, "intermediate_size", -1, &config.intermediate_size));
  FT_RETURN_IF_ERROR(read_count(json, where, "num_hidden_layers", -1, &config.num_layers));
  FT_RETURN_IF_ERROR(read_count(json, where, "num_attention_heads", -1, &config.num_heads));
  FT_RETURN_IF_ERROR(
      read_count(json, where, "num_key_value_heads", config.num_heads, &config.num_kv_heads));
  if (find_field(json, "head_dim") == nullptr && config.hidden_size % config.num_heads != 0) {
    return invalid_argument(where + ": hidden_size " + std::to_string(config.hidden_size) +
                            " is not a multiple of num_attention_heads " +
                            std::to_string(config.num_heads) + "; set 'head_dim'");
  }
  FT_RETURN_IF_ERROR(
      read_count(json, where, "head_dim", config.hidden_size / config.num_heads, &config.head_dim));
  FT_RETURN_IF_ERROR(
      read_count(json, where, "max_position_embeddings", 2048, &config.max_position_embeddings));
  FT_RETURN_IF_ERROR(read_positive(json, where, "rms_norm_eps", 1e-6, &config.rms_norm_eps));
  FT_RETURN_IF_ERROR(read_rope(json, where, &config));
  FT_RETURN_IF_ERROR(read_flag(json, where, "tie_word_embeddings", &config.tie_word_embeddings));
  FT_RETURN_IF_ERROR(read_flag(json, where, "attention_bias", &config.attention_bias));
  FT_RETURN_IF_ERROR(read_flag(json, where, "mlp_bias", &config.mlp_bias));
  FT_RETURN_IF_ERROR(read_eos(json, where, &config.eos_token_ids));
  FT_RETURN_IF_ERROR(
      read_eos(generation_json, where + " (generation_config.json)", &config.eos_token_ids));
  FT_RETURN_IF_ERROR(read_dtype(json, where, dtype, &config.dtype));
  FT_RETURN_IF_ERROR(check_shape(config, where));
  return config;
}

Result<ModelConfig> read_model_config(const std::string& folder, const std::string& dtype) {
  const std::filesystem::path path(folder);
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    return not_found("model folder " + folder + " does not exist; give the path of a folder with " +
                     "config.json, tokenizer.json and model.safetensors");
  }
  const std::string config_path = (path / "config.json").string();
  FT_ASSIGN_OR_RETURN(const Json config, read_json_file(config_path));
  Json generation_config = Json::object();
  if (std::filesystem::exists(path / "generation_config.json", ignored)) {
    FT_ASSIGN_OR_RETURN(generation_config,
                        read_json_file((path / "generation_config.json").string()));
  }
  return parse_model_config(config, generation_config, dtype, config_path);
}

}  // namespace foretoken
