#include "gguf/mistral_params.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/files/json_object.h"
#include "base/files/text_file.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr std::pair<std::string_view, std::string_view> kMistralFields[] = {
    {"dim", "hidden_size"},
    {"n_layers", "num_hidden_layers"},
    {"head_dim", "head_dim"},
    {"hidden_dim", "intermediate_size"},
    {"n_heads", "num_attention_heads"},
    {"n_kv_heads", "num_key_value_heads"},
    {"norm_eps", "rms_norm_eps"},
    {"vocab_size", "vocab_size"},
    {"rope_theta", "rope_theta"},
    {"sliding_window", "sliding_window"},
    {"max_seq_len", "max_position_embeddings"},
    {"max_position_embeddings", "max_position_embeddings"},
    {"tied_embeddings", "tie_word_embeddings"}};
// Of which a model may say that it has none.
constexpr std::string_view kNothing[] = {"use_biases", "moe", "vision_encoder", "quantization"};

}  // namespace

bool has_mistral_params(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder / "params.json", ignored) &&
         std::filesystem::exists(folder / "consolidated.safetensors", ignored) &&
         !std::filesystem::exists(folder / "config.json", ignored);
}

Result<Json> mistral_config(const std::filesystem::path& folder) {
  const std::string path = (folder / "params.json").string();
  FT_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  FT_ASSIGN_OR_RETURN(const Json params, parse_json_object(text, path));
  Json config = {{"architectures", Json::array({"MistralForCausalLM"})},
                 {"model_type", "mistral"},
                 {"rope_theta", 10000.0},
                 {"sliding_window", nullptr},
                 {"max_position_embeddings", 32768},
                 {"hidden_act", "silu"},
                 {"torch_dtype", "bfloat16"}};
  for (const auto& [name, value] : params.items()) {
    const auto* known = std::ranges::find(kMistralFields, std::string_view(name),
                                          [](const auto& field) { return field.first; });
    if (known != std::end(kMistralFields)) {
      config[std::string(known->second)] = value;
      continue;
    }
    const bool says_none = value.is_null() || value == false || (name == "causal" && value == true);
    const bool may_be_none =
        name == "causal" || std::ranges::find(kNothing, name) != std::end(kNothing);
    if (may_be_none && says_none) continue;
    return unsupported(path + ": '" + name +
                       "' is not read in Mistral's own layout, of which dense text models load; "
                       "fetch config.json and model*.safetensors of the same repository, or a GGUF "
                       "file");
  }
  return config;
}

}  // namespace foretoken
