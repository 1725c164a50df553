#include "gguf/vocabulary/tokenizer_settings.h"

#include <charconv>
#include <utility>

#include "base/files/text_file.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Beyond every vocabulary.
constexpr int64_t kMaxTokenId = int64_t{1} << 24;

Result<Json> read_settings_file(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return Json::object();
  FT_ASSIGN_OR_RETURN(const std::string text, read_text_file(file));
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return json;
  return invalid_argument(file.string() + " is not a valid JSON object; download the file again");
}

Status bad_id(const std::filesystem::path& file, const std::string& token) {
  return invalid_argument(file.string() + ": the id of the token '" + token.substr(0, 80) +
                          "' is no id of a vocabulary; download the file again");
}

bool is_id(const Json& value) {
  return value.is_number_integer() && value.get<int64_t>() >= 0 &&
         value.get<int64_t>() <= kMaxTokenId;
}

bool flag_of(const Json& object, const char* name, bool otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

std::optional<bool> optional_flag(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_boolean()) return std::nullopt;
  return found->get<bool>();
}

std::string text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// added_tokens_decoder: {"32000": {"content": ..., "special": ...}}.
Status read_decoder(const Json& config, const std::filesystem::path& file,
                    std::map<int64_t, AddedToken>* added) {
  const auto found = config.find("added_tokens_decoder");
  if (found == config.end() || !found->is_object()) return {};
  for (const auto& [key, token] : found->items()) {
    int64_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool valid = error == std::errc() && end == key.data() + key.size() && id >= 0 &&
                       id <= kMaxTokenId && token.is_object();
    if (!valid) return bad_id(file, key);
    (*added)[id] = {id,
                    text_of(token, "content"),
                    flag_of(token, "special", false),
                    flag_of(token, "lstrip", false),
                    flag_of(token, "rstrip", false),
                    flag_of(token, "single_word", false),
                    flag_of(token, "normalized", false)};
  }
  return {};
}

// None for what is no number of characters.
std::optional<int32_t> optional_count(const Json& object, const char* key) {
  const auto found = object.find(key);
  const bool is_count =
      found != object.end() && found->is_number_integer() && *found > 0 && *found <= 1000;
  return is_count ? std::optional(found->get<int32_t>()) : std::nullopt;
}

// Texts, or objects with the text in "content".
void read_roles(const Json& config, std::map<std::string, std::string>* roles) {
  for (const auto& [key, value] : config.items()) {
    if (!key.ends_with("_token")) continue;
    if (value.is_string()) roles->emplace(key, value.get<std::string>());
    if (value.is_object() && !text_of(value, "content").empty()) {
      roles->emplace(key, text_of(value, "content"));
    }
  }
}

bool is_role(const TokenizerSettings& settings, const std::string& token) {
  for (const auto& [role, text] : settings.roles) {
    if (text == token) return true;
  }
  return false;
}

// added_tokens.json: {"<pad>": 32000}.
Status read_added(const Json& tokens, const std::filesystem::path& file,
                  TokenizerSettings* settings) {
  for (const auto& [token, id] : tokens.items()) {
    if (!is_id(id)) return bad_id(file, token);
    const bool special = is_role(*settings, token);
    settings->added.emplace(id.get<int64_t>(), AddedToken{id.get<int64_t>(), token, special, false,
                                                          false, false, !special});
  }
  return {};
}

}  // namespace

std::string TokenizerSettings::role(const std::string& name, const std::string& otherwise) const {
  const auto found = roles.find(name);
  return found == roles.end() ? otherwise : found->second;
}

Result<TokenizerSettings> read_tokenizer_settings(const std::filesystem::path& folder) {
  TokenizerSettings settings;
  const std::filesystem::path file = folder / "tokenizer_config.json";
  FT_ASSIGN_OR_RETURN(const Json config, read_settings_file(file));
  FT_ASSIGN_OR_RETURN(const Json map, read_settings_file(folder / "special_tokens_map.json"));
  FT_ASSIGN_OR_RETURN(const Json added, read_settings_file(folder / "added_tokens.json"));
  settings.class_name = text_of(config, "tokenizer_class");
  settings.add_bos = optional_flag(config, "add_bos_token");
  settings.add_eos = optional_flag(config, "add_eos_token");
  settings.add_prefix_space = optional_flag(config, "add_prefix_space");
  settings.legacy = optional_flag(config, "legacy");
  settings.break_spaces = optional_count(config, "break_around_consecutive_spaces_threshold");
  settings.break_repeats = optional_count(config, "break_around_repeated_chars_threshold");
  FT_RETURN_IF_ERROR(read_decoder(config, file, &settings.added));
  read_roles(config, &settings.roles);
  read_roles(map, &settings.roles);
  FT_RETURN_IF_ERROR(read_added(added, folder / "added_tokens.json", &settings));
  // A broken config.json is told when the model is read.
  const Result<std::string> model = read_text_file(folder / "config.json");
  const Json parsed = model.ok() ? Json::parse(model.value(), nullptr, false) : Json();
  if (parsed.is_object()) settings.model_type = text_of(parsed, "model_type");
  return settings;
}

std::vector<AddedToken> all_added_tokens(const TokenizerSettings& settings,
                                         const std::vector<AddedToken>& own,
                                         std::map<std::string, int64_t>* ids) {
  std::map<int64_t, AddedToken> all;
  for (const AddedToken& token : own) all[token.id] = token;
  for (const auto& [role, text] : settings.roles) {
    const auto found = ids->find(text);
    if (found != ids->end()) all[found->second] = {found->second, text};
  }
  for (const auto& [id, token] : settings.added) {
    if (token.content.empty()) continue;
    all[id] = token;
  }
  // A piece of the vocabulary that `settings` call otherwise has that name alone.
  std::erase_if(*ids, [&](const auto& named) {
    const auto found = all.find(named.second);
    return found != all.end() && found->second.content != named.first;
  });
  std::vector<AddedToken> tokens;
  for (const auto& [id, token] : all) {
    (*ids)[token.content] = id;
    tokens.push_back(token);
  }
  return tokens;
}

Json roles_json(const TokenizerSettings& settings,
                const std::map<std::string, std::string>& fallbacks) {
  Json config = Json::object();
  for (const auto& [role, text] : settings.roles) config[role] = text;
  for (const auto& [role, text] : fallbacks) {
    if (!config.contains(role) && !text.empty()) config[role] = text;
  }
  return config;
}

TokenNames token_names(bool wanted, const std::string& token,
                       const std::map<std::string, int64_t>& ids) {
  const auto found = ids.find(token);
  if (!wanted || token.empty() || found == ids.end()) return {};
  return {{token, found->second}};
}

}  // namespace foretoken
