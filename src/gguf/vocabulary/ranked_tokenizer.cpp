#include "gguf/vocabulary/ranked_tokenizer.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

namespace foretoken {
namespace {

using Json = nlohmann::json;

// The next line, which it takes off.
std::string_view take_line(std::string_view* rest) {
  const size_t end = rest->find('\n');
  std::string_view line = rest->substr(0, end);
  rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

struct RankedLine {
  std::string token;
  size_t rank = 0;
};

std::optional<RankedLine> parse_ranked_line(std::string_view line) {
  const size_t blank = line.find(' ');
  if (blank == 0 || blank == std::string_view::npos) return std::nullopt;
  const std::optional<std::string> token = decode_base64(line.substr(0, blank));
  const std::string_view number = line.substr(blank + 1);
  size_t rank = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), rank);
  const bool valid = error == std::errc() && end == number.data() + number.size();
  if (!token || token->empty() || !valid) return std::nullopt;
  return RankedLine{*token, rank};
}

// Every way to make a token of two others: the earliest token first, as tiktoken merges.
Json ranked_merges(const std::vector<std::string>& tokens, const std::vector<std::string>& names) {
  std::unordered_map<std::string_view, size_t> ranks;
  for (size_t i = 0; i < tokens.size(); ++i) ranks.emplace(tokens[i], i);
  Json merges = Json::array();
  std::vector<std::pair<size_t, size_t>> ways;
  for (const std::string& token : tokens) {
    ways.clear();
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = ranks.find(std::string_view(token).substr(0, cut));
      const auto right = ranks.find(std::string_view(token).substr(cut));
      if (left != ranks.end() && right != ranks.end()) {
        ways.emplace_back(left->second, right->second);
      }
    }
    std::sort(ways.begin(), ways.end());
    for (const auto& [left, right] : ways) merges.push_back(names[left] + " " + names[right]);
  }
  return merges;
}

}  // namespace

bool is_tiktoken_file(std::string_view bytes) {
  return parse_ranked_line(take_line(&bytes)).has_value();
}

Result<std::vector<std::string>> parse_tiktoken_file(std::string_view bytes,
                                                     const std::string& where) {
  std::vector<std::string> tokens;
  while (!bytes.empty()) {
    const std::string_view line = take_line(&bytes);
    if (line.empty()) continue;
    std::optional<RankedLine> parsed = parse_ranked_line(line);
    if (!parsed || parsed->rank != tokens.size()) {
      return invalid_argument(where + ": line " + std::to_string(tokens.size() + 1) +
                              " is no token in base64 with the rank " +
                              std::to_string(tokens.size()) +
                              "; the file is damaged or incomplete, fetch it again");
    }
    tokens.push_back(std::move(parsed->token));
  }
  if (!tokens.empty()) return tokens;
  return invalid_argument(where + " holds no tokens; fetch it again");
}

MadeTokenizer ranked_tokenizer(const std::vector<std::string>& tokens, const RankedForm& form,
                               const TokenizerSettings& settings) {
  std::vector<std::string> names;
  std::map<std::string, int64_t> ids;
  for (size_t i = 0; i < tokens.size(); ++i) {
    names.push_back(byte_level_text(tokens[i]));
    ids[names.back()] = form.first_id + static_cast<int64_t>(i);
  }
  const std::vector<AddedToken> added = all_added_tokens(settings, form.special, &ids);
  Json vocab = Json::object();
  for (const auto& [token, id] : ids) vocab[token] = id;
  Json model = bpe_model_json(std::move(vocab), ranked_merges(tokens, names));
  model["ignore_merges"] = true;
  TokenNames before = form.before;
  if (settings.add_bos) {
    before = token_names(*settings.add_bos, settings.role("bos_token", form.bos_token), ids);
  }
  Json post = around_text_json(before, {});
  MadeTokenizer made;
  made.config =
      roles_json(settings, {{"bos_token", form.bos_token}, {"eos_token", form.eos_token}});
  made.tokenizer = {
      {"version", "1.0"},
      {"added_tokens", added_tokens_json(added)},
      {"normalizer", form.composes ? Json{{"type", "NFC"}} : Json()},
      {"pre_tokenizer",
       {{"type", "Sequence"},
        {"pretokenizers", Json::array({split_step(form.pattern), byte_level_step(false)})}}},
      {"post_processor", post.is_null() ? byte_level_step(true) : std::move(post)},
      {"decoder", byte_level_step(true)},
      {"model", std::move(model)}};
  return made;
}

}  // namespace foretoken
