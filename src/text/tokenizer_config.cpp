#include "text/tokenizer_config.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/files/text_file.h"
#include "gguf/model_texts.h"

namespace foretoken {
namespace {

using PlainJson = nlohmann::json;

// An absent file is an empty object.
Result<PlainJson> read_object(const ModelFiles& model, const char* name) {
  FT_ASSIGN_OR_RETURN(const auto content, read_model_text(model, name));
  if (!content) return PlainJson::object();
  const std::filesystem::path file = model.path() / name;
  PlainJson parsed = PlainJson::parse(*content, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) {
    return invalid_argument(file.string() + " is not a valid JSON object; download the file again");
  }
  return parsed;
}

// A token is written as its text, or as an object that holds the text in "content".
void add_special_tokens(const PlainJson& config, std::map<std::string, std::string>& tokens) {
  for (const auto& [key, value] : config.items()) {
    if (!key.ends_with("_token")) continue;
    const PlainJson* text = &value;
    if (value.is_object() && value.contains("content")) text = &value["content"];
    if (text->is_string()) tokens.emplace(key, text->get<std::string>());
  }
}

// Either one source, an object of sources by name, or a list of {"name", "template"}.
Status add_templates(const std::filesystem::path& file, const PlainJson& config,
                     std::map<std::string, std::string>& templates) {
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return {};
  if (found->is_string()) {
    templates["default"] = found->get<std::string>();
    return {};
  }
  const Status broken = invalid_argument(
      file.string() + ": chat_template must be a string or a list of {\"name\", \"template\"}");
  if (found->is_object()) {
    for (const auto& [name, source] : found->items()) {
      if (!source.is_string()) return broken;
      templates[name] = source.get<std::string>();
    }
    return {};
  }
  if (!found->is_array()) return broken;
  for (const PlainJson& entry : *found) {
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() ||
        !entry.contains("template") || !entry["template"].is_string()) {
      return broken;
    }
    templates[entry["name"].get<std::string>()] = entry["template"].get<std::string>();
  }
  return {};
}

// additional_chat_templates/NAME.jinja, as transformers writes templates beside the usual one.
Status add_named_files(const std::filesystem::path& folder,
                       std::map<std::string, std::string>& templates) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".jinja") continue;
    FT_ASSIGN_OR_RETURN(templates[entry.path().stem().string()], read_text_file(entry.path()));
  }
  return {};
}

}  // namespace

Result<TokenizerConfig> load_tokenizer_config(const ModelFiles& model) {
  const std::filesystem::path& folder = model.path();
  TokenizerConfig config;
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::filesystem::path file = folder / name;
    FT_ASSIGN_OR_RETURN(const PlainJson parsed, read_object(model, name));
    add_special_tokens(parsed, config.special_tokens);
    const auto split = parsed.find("split_special_tokens");
    if (split != parsed.end() && split->is_boolean()) config.split_special_tokens = *split;
    FT_RETURN_IF_ERROR(add_templates(file, parsed, config.chat_templates));
  }
  const std::filesystem::path old_style = folder / "chat_template.json";
  FT_ASSIGN_OR_RETURN(const PlainJson parsed, read_object(model, "chat_template.json"));
  FT_RETURN_IF_ERROR(add_templates(old_style, parsed, config.chat_templates));
  const std::filesystem::path jinja = folder / "chat_template.jinja";
  if (std::filesystem::exists(jinja)) {
    FT_ASSIGN_OR_RETURN(config.chat_templates["default"], read_text_file(jinja));
  }
  FT_RETURN_IF_ERROR(add_named_files(folder / "additional_chat_templates", config.chat_templates));
  // Converters write an empty text where a model has none.
  std::erase_if(config.chat_templates, [](const auto& named) {
    return named.second.find_first_not_of(" \t\r\n") == std::string::npos;
  });
  return config;
}

}  // namespace foretoken
