#include "engine/request/parameters/embedding_prompts.h"

#include <optional>

#include "base/files/json_object.h"
#include "base/log.h"
#include "gguf/model_texts.h"

namespace foretoken {
namespace {

constexpr const char* kFile = "config_sentence_transformers.json";

Result<nlohmann::ordered_json> read_file(const ModelFiles& target) {
  FT_ASSIGN_OR_RETURN(const std::optional<std::string> text, read_model_text(target, kFile));
  if (!text) return nlohmann::ordered_json::object();
  return parse_ordered_json_object(*text, (target.path() / kFile).string());
}

}  // namespace

EmbeddingPrompts load_embedding_prompts(const ModelFiles& target) {
  EmbeddingPrompts prompts;
  const Result<nlohmann::ordered_json> file = read_file(target);
  if (!file.ok()) {
    FT_LOG(warn, "{}; embeddings are made without the model's own prompts",
           file.status().message());
    return prompts;
  }
  const nlohmann::ordered_json texts = file.value().value("prompts", nlohmann::ordered_json());
  if (!texts.is_object()) return prompts;
  for (const auto& [name, text] : texts.items()) {
    if (text.is_string()) prompts.all.push_back({name, text.get<std::string>()});
  }
  const nlohmann::ordered_json usual =
      file.value().value("default_prompt_name", nlohmann::ordered_json());
  if (usual.is_string() && texts.contains(usual.get<std::string>())) {
    prompts.usual = usual.get<std::string>();
  }
  return prompts;
}

}  // namespace foretoken
