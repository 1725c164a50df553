#include "gguf/model_texts.h"

#include <utility>

#include "base/files/text_file.h"
#include "gguf/hf_config.h"
#include "gguf/hf_tokenizer.h"
#include "gguf/meta_params.h"
#include "gguf/mistral_params.h"
#include "gguf/vocabulary/folder_tokenizer.h"

namespace foretoken {
namespace {

using Make = Result<nlohmann::json> (*)(const GgufFile&);

constexpr std::pair<std::string_view, Make> kMade[] = {
    {"config.json", gguf_model_config},
    {"generation_config.json", gguf_generation_config},
    {"tokenizer.json", gguf_tokenizer},
    {"tokenizer_config.json", gguf_tokenizer_config}};

Make maker_of(std::string_view name) {
  for (const auto& [made, make] : kMade) {
    if (made == name) return make;
  }
  return nullptr;
}

// Tokens may hold bytes that are no UTF-8.
std::string text_of(const nlohmann::json& made) {
  return made.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool has_tokenizer_json(const ModelFiles& model) {
  std::error_code ignored;
  return std::filesystem::exists(model.path() / "tokenizer.json", ignored);
}

bool is_of_tokenizer(std::string_view name) {
  return name == "tokenizer.json" || name == "tokenizer_config.json";
}

// Of a folder whose tokenizer is published in another form (gguf/vocabulary/folder_tokenizer.h).
Result<std::optional<std::string>> made_of_vocabulary(const ModelFiles& model,
                                                      std::string_view name) {
  FT_ASSIGN_OR_RETURN(const auto made, folder_tokenizer(model.path()));
  if (!made) return std::optional<std::string>();
  return std::optional(text_of(name == "tokenizer.json" ? made->tokenizer : made->config));
}

}  // namespace

Result<std::optional<std::string>> read_model_text(const ModelFiles& model, std::string_view name) {
  if (model.is_gguf()) {
    const Make make = maker_of(name);
    if (make == nullptr) return std::optional<std::string>();
    FT_ASSIGN_OR_RETURN(const auto file, model.gguf());
    FT_ASSIGN_OR_RETURN(const nlohmann::json made, make(*file));
    return std::optional(text_of(made));
  }
  const std::filesystem::path path = model.path() / name;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    if (name == "config.json" && has_mistral_params(model.path())) {
      FT_ASSIGN_OR_RETURN(const nlohmann::json made, mistral_config(model.path()));
      return std::optional(text_of(made));
    }
    if (name == "config.json" && has_meta_params(model.path())) {
      FT_ASSIGN_OR_RETURN(const nlohmann::json made, meta_config(model.path()));
      return std::optional(text_of(made));
    }
    if (is_of_tokenizer(name) && !has_tokenizer_json(model)) return made_of_vocabulary(model, name);
    return std::optional<std::string>();
  }
  FT_ASSIGN_OR_RETURN(std::string content, read_text_file(path));
  return std::optional(std::move(content));
}

bool has_model_text(const ModelFiles& model, std::string_view name) {
  if (model.is_gguf()) return maker_of(name) != nullptr;
  std::error_code ignored;
  if (std::filesystem::exists(model.path() / name, ignored)) return true;
  if (name == "config.json") {
    return has_mistral_params(model.path()) || has_meta_params(model.path());
  }
  return name == "tokenizer.json" && !folder_vocabulary(model.path()).empty();
}

}  // namespace foretoken
