#include "gguf/model_texts.h"

#include <utility>

#include "base/text_file.h"
#include "gguf/hf_config.h"
#include "gguf/hf_tokenizer.h"

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

}  // namespace

Result<std::optional<std::string>> read_model_text(const ModelFiles& model, std::string_view name) {
  if (model.is_gguf()) {
    const Make make = maker_of(name);
    if (make == nullptr) return std::optional<std::string>();
    FT_ASSIGN_OR_RETURN(const auto file, model.gguf());
    FT_ASSIGN_OR_RETURN(const nlohmann::json made, make(*file));
    // Tokens may hold bytes that are no UTF-8.
    return std::optional(made.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  const std::filesystem::path path = model.path() / name;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::optional<std::string>();
  FT_ASSIGN_OR_RETURN(std::string content, read_text_file(path));
  return std::optional(std::move(content));
}

bool has_model_text(const ModelFiles& model, std::string_view name) {
  if (model.is_gguf()) return maker_of(name) != nullptr;
  std::error_code ignored;
  return std::filesystem::exists(model.path() / name, ignored);
}

}  // namespace foretoken
