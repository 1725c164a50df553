#include "gguf/meta_params.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/files/json_object.h"
#include "base/files/text_file.h"
#include "gguf/mistral_params.h"
#include "gguf/vocabulary/sentencepiece_file.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMetaFields[] = {"dim",
                                            "n_layers",
                                            "n_heads",
                                            "n_kv_heads",
                                            "vocab_size",
                                            "multiple_of",
                                            "norm_eps",
                                            "ffn_dim_multiplier",
                                            "rope_theta",
                                            "use_scaled_rope",
                                            "max_seq_len",
                                            "max_batch_size",
                                            "rope_scaling_factor",
                                            "model_parallel_size"};
constexpr int64_t kLargestSize = int64_t{1} << 31;

struct MetaParams {
  std::string path;
  Json json;

  Result<int64_t> count(const char* name) const {
    const auto found = json.find(name);
    if (found != json.end() && found->is_number_integer() && *found > 0 && *found < kLargestSize) {
      return found->get<int64_t>();
    }
    return invalid_argument(path + ": '" + name + "' must be a count; fetch the file again");
  }
  Result<double> number(const char* name, double usual) const {
    const auto found = json.find(name);
    if (found == json.end() || found->is_null()) return usual;
    if (found->is_number() && *found > 0) return found->get<double>();
    return invalid_argument(path + ": '" + name +
                            "' must be a number above 0; fetch the file again");
  }
};

// Two thirds of four times the columns, times a factor, as a multiple.
Result<int64_t> inner_size(const MetaParams& params, int64_t dim) {
  FT_ASSIGN_OR_RETURN(const int64_t multiple, params.count("multiple_of"));
  FT_ASSIGN_OR_RETURN(const double factor, params.number("ffn_dim_multiplier", 1));
  const double size = factor * static_cast<double>(8 * dim / 3);
  if (size >= static_cast<double>(kLargestSize)) {
    return invalid_argument(params.path +
                            ": 'dim' and 'ffn_dim_multiplier' make a layer that is too large; "
                            "fetch the file again");
  }
  const auto wanted = static_cast<int64_t>(size);
  return (wanted + multiple - 1) / multiple * multiple;
}

// Llama 1 and 2 leave it to their tokenizer.
Result<int64_t> vocabulary_size(const MetaParams& params, const std::filesystem::path& folder) {
  const auto found = params.json.find("vocab_size");
  if (found != params.json.end() && *found != -1) return params.count("vocab_size");
  const std::string path = (folder / "tokenizer.model").string();
  const Result<std::string> bytes = read_text_file(path);
  if (!bytes.ok() || !is_sentencepiece_file(bytes.value())) {
    return not_found(path +
                     ", a SentencePiece model that says how many tokens there are, cannot be "
                     "read; put it beside the weights");
  }
  FT_ASSIGN_OR_RETURN(const SentencePieceModel model,
                      parse_sentencepiece_file(bytes.value(), path));
  return static_cast<int64_t>(model.pieces.size());
}

Status set_positions(const MetaParams& params, int64_t dim, Json* config) {
  FT_ASSIGN_OR_RETURN(const double theta, params.number("rope_theta", 10000));
  FT_ASSIGN_OR_RETURN(const double eps, params.number("norm_eps", 1e-5));
  (*config)["rope_theta"] = theta;
  (*config)["rms_norm_eps"] = eps;
  const bool is_scaled = params.json.value("use_scaled_rope", Json(false)) == true;
  (*config)["max_position_embeddings"] = is_scaled          ? 131072
                                         : theta >= 1000000 ? 16384
                                         : theta >= 500000  ? 8192
                                         : eps < 1e-5       ? 2048
                                                            : 4096;
  if (!is_scaled) return {};
  FT_ASSIGN_OR_RETURN(const double factor,
                      params.number("rope_scaling_factor", dim <= 3072 ? 32 : 8));
  (*config)["rope_scaling"] = {{"rope_type", "llama3"},
                               {"factor", factor},
                               {"low_freq_factor", 1.0},
                               {"high_freq_factor", 4.0},
                               {"original_max_position_embeddings", 8192}};
  return {};
}

// Those of the tokenizers that the models share: tiktoken's of Llama 3, else SentencePiece's.
void set_special_ids(int64_t vocabulary, Json* config) {
  const bool is_third = vocabulary >= 128256;
  (*config)["bos_token_id"] = is_third ? 128000 : 1;
  (*config)["eos_token_id"] = is_third ? Json({128001, 128008, 128009}) : Json(2);
}

// Mistral's first models were published under the same names, with fields of their own.
Status check_fields(const MetaParams& params) {
  for (const auto& [name, value] : params.json.items()) {
    if (std::ranges::find(kMetaFields, name) != std::end(kMetaFields)) continue;
    const char* const why =
        name == "head_dim" || name == "hidden_dim"
            ? "' is of Mistral's own layout, which is not read from *.pth files"
            : "' is not read in Meta's own layout, of which Llama 1 to 3.3 load as plain text "
              "models";
    return unsupported(params.path + ": '" + name + why +
                       "; use the repository's *.safetensors with its config.json, or a GGUF file");
  }
  return {};
}

}  // namespace

bool has_meta_params(const std::filesystem::path& folder) {
  std::error_code ignored;
  const auto has = [&](const char* name) {
    return std::filesystem::exists(folder / name, ignored);
  };
  return has("params.json") && has("consolidated.00.pth") && !has("config.json") &&
         !has_mistral_params(folder);
}

Result<Json> meta_config(const std::filesystem::path& folder) {
  MetaParams params{(folder / "params.json").string(), {}};
  FT_ASSIGN_OR_RETURN(const std::string text, read_text_file(params.path));
  FT_ASSIGN_OR_RETURN(params.json, parse_json_object(text, params.path));
  FT_RETURN_IF_ERROR(check_fields(params));
  FT_ASSIGN_OR_RETURN(const int64_t dim, params.count("dim"));
  FT_ASSIGN_OR_RETURN(const int64_t heads, params.count("n_heads"));
  if (dim % heads != 0) {
    return invalid_argument(params.path +
                            ": 'dim' must be a multiple of 'n_heads'; fetch the file again");
  }
  FT_ASSIGN_OR_RETURN(const int64_t layers, params.count("n_layers"));
  FT_ASSIGN_OR_RETURN(const int64_t inner, inner_size(params, dim));
  FT_ASSIGN_OR_RETURN(const int64_t vocabulary, vocabulary_size(params, folder));
  int64_t kv_heads = heads;
  if (params.json.contains("n_kv_heads") && !params.json["n_kv_heads"].is_null()) {
    FT_ASSIGN_OR_RETURN(kv_heads, params.count("n_kv_heads"));
  }
  Json config = {{"architectures", Json::array({"LlamaForCausalLM"})},
                 {"model_type", "llama"},
                 {"hidden_size", dim},
                 {"num_hidden_layers", layers},
                 {"num_attention_heads", heads},
                 {"num_key_value_heads", kv_heads},
                 {"head_dim", dim / heads},
                 {"intermediate_size", inner},
                 {"vocab_size", vocabulary},
                 {"hidden_act", "silu"},
                 {"tie_word_embeddings", false},
                 {"torch_dtype", "bfloat16"}};
  FT_RETURN_IF_ERROR(set_positions(params, dim, &config));
  set_special_ids(vocabulary, &config);
  return config;
}

}  // namespace foretoken
