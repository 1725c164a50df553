#include "gguf/vocabulary/world_tokenizer.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kEscaped = "ntr\\'\"abfv0";
constexpr std::string_view kMeant("\n\t\r\\'\"\a\b\f\v\0", 11);

void append_character(uint32_t code, std::string* to) {
  const auto add = [&](uint32_t byte) { to->push_back(static_cast<char>(byte)); };
  const auto tail = [&](int shift) { add(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0 | (code >> 6));
    return tail(0);
  }
  if (code < 0x10000) {
    add(0xe0 | (code >> 12));
    tail(6);
    return tail(0);
  }
  add(0xf0 | (code >> 18));
  tail(12);
  tail(6);
  tail(0);
}

// What stands behind \x, \u or \U, which is taken off `text`.
std::optional<uint32_t> take_code(std::string_view* text, size_t digits) {
  if (text->size() < digits) return std::nullopt;
  uint32_t code = 0;
  const char* end = text->data() + digits;
  const auto parsed = std::from_chars(text->data(), end, code, 16);
  if (parsed.ec != std::errc() || parsed.ptr != end || code > 0x10ffff) return std::nullopt;
  text->remove_prefix(digits);
  return code;
}

// The bytes that Python's text of a string, or of bytes, stands for, without its quotes.
std::optional<std::string> bytes_of(std::string_view text, bool of_bytes) {
  std::string bytes;
  while (!text.empty()) {
    const char first = text.front();
    text.remove_prefix(1);
    if (first != '\\') {
      bytes += first;
      continue;
    }
    if (text.empty()) return std::nullopt;
    const char kind = text.front();
    text.remove_prefix(1);
    const size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (digits == 0) {
      const size_t at = kEscaped.find(kind);
      if (at == std::string_view::npos) return std::nullopt;
      bytes += kMeant[at];
      continue;
    }
    const auto code = take_code(&text, digits);
    if (!code) return std::nullopt;
    if (of_bytes) {
      bytes += static_cast<char>(*code);
    } else {
      append_character(*code, &bytes);
    }
  }
  return bytes;
}

template <class T>
bool parse_whole(std::string_view text, T* out) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), *out);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

// 1 'a' 1 or 257 b'\xe0' 1; none for a line that is neither.
std::optional<std::pair<int64_t, std::string>> parse_line(std::string_view line) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  int64_t id = 0;
  size_t size = 0;
  if (first == std::string_view::npos || last <= first) return std::nullopt;
  if (!parse_whole(line.substr(0, first), &id) || !parse_whole(line.substr(last + 1), &size)) {
    return std::nullopt;
  }
  std::string_view written = line.substr(first + 1, last - first - 1);
  const bool of_bytes = written.starts_with('b');
  if (of_bytes) written.remove_prefix(1);
  const bool quoted = written.size() >= 2 && written.front() == written.back() &&
                      (written.front() == '\'' || written.front() == '"');
  if (!quoted || id < 0 || id > 1 << 24) return std::nullopt;
  auto bytes = bytes_of(written.substr(1, written.size() - 2), of_bytes);
  if (!bytes || bytes->empty() || bytes->size() != size) return std::nullopt;
  return std::pair(id, *std::move(bytes));
}

}  // namespace

Result<WorldTokens> parse_world_file(std::string_view text, const std::string& where) {
  WorldTokens tokens;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    auto parsed = parse_line(line);
    if (!parsed) {
      return invalid_argument(where + ": line " + std::to_string(number) +
                              " is no id, token and number of bytes; the file is damaged or "
                              "incomplete, fetch it again");
    }
    tokens.insert(*std::move(parsed));
  }
  if (!tokens.empty()) return tokens;
  return invalid_argument(where + " holds no tokens; fetch it again");
}

Result<WorldTokens> gguf_world_tokens(const GgufVocabulary& vocabulary, const std::string& where) {
  WorldTokens tokens;
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (!vocabulary.is_of(i, GgufTokenType::kNormal)) continue;
    auto bytes = bytes_of(vocabulary.tokens[i], true);
    if (!bytes || bytes->empty()) {
      return invalid_argument(where + ": token " + std::to_string(i) + " ('" +
                              vocabulary.tokens[i] +
                              "') is no text of bytes; convert the model again");
    }
    tokens.emplace(static_cast<int64_t>(i), *std::move(bytes));
  }
  return tokens;
}

MadeTokenizer world_tokenizer(const WorldTokens& tokens, const std::string& end,
                              const TokenizerSettings& settings) {
  std::map<std::string, int64_t> ids;
  for (const auto& [id, token] : tokens) ids.emplace(byte_level_text(token), id);
  const std::vector<AddedToken> added = all_added_tokens(settings, {{0, end}}, &ids);
  Json vocab = Json::object();
  for (const auto& [token, id] : ids) vocab[token] = id;
  MadeTokenizer made;
  made.config = roles_json(settings, {{"bos_token", end}, {"eos_token", end}});
  made.tokenizer = {
      {"version", "1.0"},
      {"added_tokens", added_tokens_json(added)},
      {"normalizer", nullptr},
      {"pre_tokenizer", byte_level_step(false)},
      {"post_processor", byte_level_step(true)},
      {"decoder", byte_level_step(true)},
      {"model", {{"type", "WordLevel"}, {"vocab", std::move(vocab)}, {"unk_token", end}}}};
  return made;
}

}  // namespace foretoken
