#include "gguf/vocabulary/scored_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr double kByteScore = -1000;
constexpr int64_t kNumBytes = 256;
constexpr const char* kSpecial = "<|plamo:";

// What the lines hold.
struct ScoredPieces {
  Json vocab = Json::array();
  std::map<std::string, int64_t> ids;
  std::vector<AddedToken> special;
  int64_t unknown = 0;
  int64_t num_bytes = 0;
};

bool is_token(const Json& line) {
  return line.is_array() && line.size() >= 2 && line[0].is_string() && line[1].is_number() &&
         (line.size() == 2 || line[2].is_string());
}

// Scores count in steps of 1e-4.
void add_piece(const Json& line, ScoredPieces* pieces) {
  const auto text = line[0].get<std::string>();
  const std::string kind = line.size() > 2 ? line[2].get<std::string>() : "";
  const auto id = static_cast<int64_t>(pieces->vocab.size());
  // Texts that look like a byte's name are no such piece.
  const double score = kind == "BYTE" ? kByteScore : std::round(line[1].get<double>() * 1e4) / 1e4;
  pieces->vocab.push_back(Json::array({text, score}));
  const bool is_new = pieces->ids.emplace(text, id).second;
  if (kind == "BYTE" && is_new) ++pieces->num_bytes;
  if (kind == "UNKNOWN") pieces->unknown = id;
  if (kind == "UNKNOWN" || kind == "CONTROL" || text.starts_with(kSpecial)) {
    pieces->special.push_back({id, text});
  }
}

// What no piece has is said by its bytes, or would be lost.
Status check_bytes(const ScoredPieces& pieces, const std::string& where) {
  if (pieces.num_bytes == kNumBytes) return {};
  return invalid_argument(where + " holds pieces of " + std::to_string(pieces.num_bytes) +
                          " bytes of 256, so that texts of other bytes would be lost; the file is "
                          "incomplete, fetch it again");
}

Result<ScoredPieces> parse_pieces(std::string_view lines, const std::string& where) {
  ScoredPieces pieces;
  for (int64_t number = 1; !lines.empty(); ++number) {
    const size_t end = lines.find('\n');
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
    if (line.empty()) continue;
    const Json token = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!is_token(token)) {
      return invalid_argument(where + ": line " + std::to_string(number) +
                              " is no list of a text, a score and a kind; the file is damaged or "
                              "incomplete, fetch it again");
    }
    add_piece(token, &pieces);
  }
  if (pieces.vocab.empty()) {
    return invalid_argument(where + " holds no tokens; fetch it again");
  }
  FT_RETURN_IF_ERROR(check_bytes(pieces, where));
  return pieces;
}

// Where texts are cut whatever the scores say; null: nowhere.
Json breaks_json(const TokenizerSettings& settings) {
  std::string pattern;
  if (settings.break_repeats) {
    pattern = R"((.)\1{)" + std::to_string(std::max(*settings.break_repeats - 1, 0)) + ",}";
  }
  if (settings.break_spaces) {
    pattern += (pattern.empty() ? " {" : "| {") + std::to_string(*settings.break_spaces) + ",}";
  }
  return pattern.empty() ? Json() : split_step(pattern);
}

}  // namespace

Result<MadeTokenizer> scored_tokenizer(std::string_view lines, const TokenizerSettings& settings,
                                       const std::string& where) {
  FT_ASSIGN_OR_RETURN(ScoredPieces pieces, parse_pieces(lines, where));
  const std::vector<AddedToken> added = all_added_tokens(settings, pieces.special, &pieces.ids);
  const std::string bos = settings.role("bos_token", "<|plamo:bos|>");
  const std::string eos = settings.role("eos_token", "<|plamo:eos|>");
  MadeTokenizer made;
  made.config = roles_json(settings, {{"bos_token", bos}, {"eos_token", eos}});
  made.tokenizer = {
      {"version", "1.0"},
      {"added_tokens", added_tokens_json(added)},
      {"normalizer", nullptr},
      {"pre_tokenizer", breaks_json(settings)},
      {"post_processor",
       around_text_json(token_names(settings.add_bos.value_or(false), bos, pieces.ids),
                        token_names(settings.add_eos.value_or(false), eos, pieces.ids))},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders", Json::array({{{"type", "ByteFallback"}}, {{"type", "Fuse"}}})}}},
      {"model",
       {{"type", "Unigram"},
        {"unk_id", pieces.unknown},
        {"vocab", std::move(pieces.vocab)},
        {"byte_fallback", true}}}};
  return made;
}

}  // namespace foretoken
