#include "gguf/vocabulary/merges_tokenizer.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr const char* kEndOfText = "<|endoftext|>";

bool is_qwen(const TokenizerSettings& settings) {
  if (!settings.class_name.empty()) return settings.class_name.starts_with("Qwen2Tokenizer");
  return settings.model_type.starts_with("qwen2") || settings.model_type.starts_with("qwen3");
}

// Both classes of tokenizers give it to the roles that a folder does not name.
bool is_special(const TokenizerSettings& settings, const std::string& token) {
  return std::ranges::any_of(
      std::initializer_list<const char*>{"bos_token", "eos_token", "unk_token"},
      [&](const char* role) { return settings.role(role, kEndOfText) == token; });
}

// A merge on each line; none for a line that is none.
std::optional<Json> parse_merges(std::string_view text) {
  Json merges = Json::array();
  for (bool first = true; !text.empty(); first = false) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (first && line.starts_with("#version"))) continue;
    const size_t blank = line.find(' ');
    const bool valid = blank != 0 && blank != std::string_view::npos && blank + 1 < line.size() &&
                       line.find(' ', blank + 1) == std::string_view::npos;
    if (!valid) return std::nullopt;
    merges.push_back(line);
  }
  return merges;
}

Json pre_tokenizer_of(const TokenizerSettings& settings) {
  const bool prefix = settings.add_prefix_space.value_or(false);
  if (!is_qwen(settings)) return byte_level_step(true, prefix);
  return {{"type", "Sequence"},
          {"pretokenizers",
           Json::array({split_step(kOneDigitPattern), byte_level_step(false, prefix)})}};
}

}  // namespace

Result<MadeTokenizer> merges_tokenizer(std::string_view vocab, std::string_view merges,
                                       const TokenizerSettings& settings,
                                       const std::string& where) {
  const auto broken = [&](const char* what) {
    return invalid_argument(where + ": " + what +
                            "; the file is damaged or incomplete, fetch it again");
  };
  const Json parsed = Json::parse(vocab, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object() || parsed.empty()) return broken("vocab.json is no object of ids");
  std::map<std::string, int64_t> ids;
  for (const auto& [token, id] : parsed.items()) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > 1 << 24) {
      return broken("vocab.json is no object of ids");
    }
    ids[token] = id.get<int64_t>();
  }
  std::optional<Json> list = parse_merges(merges);
  if (!list) return broken("a line of merges.txt is no merge of two tokens");
  std::vector<AddedToken> own;
  const auto end = ids.find(kEndOfText);
  if (end != ids.end() && is_special(settings, kEndOfText)) {
    own.push_back({end->second, kEndOfText});
  }
  const std::vector<AddedToken> added = all_added_tokens(settings, own, &ids);
  Json all = Json::object();
  for (const auto& [token, id] : ids) all[token] = id;
  const bool bos = settings.add_bos.value_or(false), eos = settings.add_eos.value_or(false);
  Json post = around_text_json(token_names(bos, settings.role("bos_token", kEndOfText), ids),
                               token_names(eos, settings.role("eos_token", kEndOfText), ids));
  MadeTokenizer made;
  made.config = roles_json(settings, {{"eos_token", own.empty() ? "" : kEndOfText}});
  made.tokenizer = {{"version", "1.0"},
                    {"added_tokens", added_tokens_json(added)},
                    {"normalizer", is_qwen(settings) ? Json{{"type", "NFC"}} : Json()},
                    {"pre_tokenizer", pre_tokenizer_of(settings)},
                    {"post_processor", post.is_null() ? byte_level_step(true) : std::move(post)},
                    {"decoder", byte_level_step(true)},
                    {"model", bpe_model_json(std::move(all), std::move(*list))}};
  return made;
}

}  // namespace foretoken
