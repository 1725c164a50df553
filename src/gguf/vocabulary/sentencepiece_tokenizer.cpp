#include "gguf/vocabulary/sentencepiece_tokenizer.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "gguf/vocabulary/piece_merges.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;
using Kind = SentencePieceModel::Kind;
using PieceType = SentencePieceModel::PieceType;

// Those of ChatGLM 2 and 3 have ids behind all pieces.
constexpr const char* kChatGlmTokens[] = {"[MASK]", "[gMASK]", "[sMASK]", "sop", "eop"};
constexpr const char* kSpaceMark = "\u2581";
// More than the characters of "<0x41>" cost as tokens of their own.
constexpr double kNameOfByte = 200;

Json replace_text(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

Json replace_regex(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"Regex", from}}}, {"content", to}};
}

Json sequence(const char* field, Json steps) {
  if (steps.empty()) return Json();
  return {{"type", "Sequence"}, {field, std::move(steps)}};
}

std::string quote_regex(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    if (std::string_view("\\.+*?()|[]{}^$#&-~/ \t\r\n\f\v").find(c) != std::string_view::npos) {
      quoted += c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : std::string("\\") + c;
    } else {
      quoted += c;
    }
  }
  return quoted;
}

// Builds one tokenizer.
class PieceTokenizer {
 public:
  PieceTokenizer(const SentencePieceModel& model, const TokenizerSettings& settings)
      : model_(model), settings_(settings) {}

  MadeTokenizer make();

 private:
  bool has_prefix() const {
    return settings_.add_prefix_space.value_or(model_.add_dummy_prefix) && model_.add_dummy_prefix;
  }
  bool is_deberta() const { return settings_.model_type == "deberta-v2"; }
  bool is_chatglm() const { return settings_.class_name == "ChatGLMTokenizer"; }
  bool is_legacy() const { return settings_.legacy.value_or(true); }
  std::string first_of(PieceType type, size_t skip = 0) const;
  std::vector<AddedToken> own_tokens() const;
  TokenNames before_text(const std::string& bos) const;
  std::vector<std::string> user_defined() const;
  Json normalizer() const;
  Json pre_tokenizer() const;
  Json decoder() const;
  Json bpe() const;
  Json unigram() const;

  const SentencePieceModel& model_;
  const TokenizerSettings& settings_;
  std::map<std::string, int64_t> ids_;
  std::set<std::string> added_;
};

// SentencePiece gives control pieces no role; models have their begin before their end.
std::string PieceTokenizer::first_of(PieceType type, size_t skip) const {
  for (const auto& piece : model_.pieces) {
    if (piece.type == type && skip-- == 0) return piece.text;
  }
  return {};
}

// Control pieces never come from text in SentencePiece itself, but chat templates write them out.
std::vector<AddedToken> PieceTokenizer::own_tokens() const {
  std::vector<AddedToken> own;
  for (size_t i = 0; i < model_.pieces.size(); ++i) {
    const auto& piece = model_.pieces[i];
    if (piece.type == PieceType::kControl || piece.type == PieceType::kUnknown) {
      own.push_back({static_cast<int64_t>(i), piece.text});
    }
  }
  return own;
}

// What stands before a text that is no part of a chat.
TokenNames PieceTokenizer::before_text(const std::string& bos) const {
  if (!is_chatglm()) return token_names(settings_.add_bos.value_or(true), bos, ids_);
  return {{"[gMASK]", ids_.at("[gMASK]")}, {"sop", ids_.at("sop")}};
}

// Those that are always one token, wherever they stand; the longest first.
std::vector<std::string> PieceTokenizer::user_defined() const {
  std::vector<std::string> texts;
  for (const auto& piece : model_.pieces) {
    if (piece.type != PieceType::kUserDefined || piece.text.empty()) continue;
    if (!added_.contains(piece.text)) texts.push_back(piece.text);
  }
  std::stable_sort(texts.begin(), texts.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  return texts;
}

// In SentencePiece's order. A prefix for every piece of text is set here; one for the first alone
// by a step before the model.
Json PieceTokenizer::normalizer() const {
  Json steps = Json::array();
  if (!model_.charsmap.empty()) {
    steps.push_back(
        {{"type", "Precompiled"}, {"precompiled_charsmap", encode_base64(model_.charsmap)}});
  }
  if (model_.remove_extra_whitespaces) {
    steps.push_back(replace_regex(R"(\A +)", ""));
    steps.push_back(replace_regex(" {2,}", " "));
  }
  if (has_prefix() && is_legacy()) {
    steps.push_back({{"type", "Prepend"}, {"prepend", " "}});
  }
  if (model_.escape_whitespaces) steps.push_back(replace_text(" ", kSpaceMark));
  // Marks that were written out count at the end of a text, and only there.
  if (model_.remove_extra_whitespaces) {
    steps.push_back(replace_regex(model_.escape_whitespaces ? "(?:\u2581)+\\z" : " +\\z", ""));
  }
  return sequence("normalizers", std::move(steps));
}

Json PieceTokenizer::pre_tokenizer() const {
  Json steps = Json::array();
  if (has_prefix() && !is_legacy()) {
    steps.push_back({{"type", "Metaspace"},
                     {"replacement", kSpaceMark},
                     {"prepend_scheme", "first"},
                     {"split", false}});
  }
  std::string pattern;
  for (const std::string& text : user_defined()) {
    pattern += (pattern.empty() ? "" : "|") + quote_regex(text);
  }
  // Pieces that are taken whole may not be the name of a byte, which is no text.
  if (!pattern.empty() && model_.byte_fallback) pattern += "|(?<=<)0x(?=[0-9A-F]{2}>)";
  if (!pattern.empty()) steps.push_back(split_step(pattern));
  return sequence("pretokenizers", std::move(steps));
}

Json PieceTokenizer::decoder() const {
  Json steps = Json::array({replace_text(kSpaceMark, " ")});
  if (model_.byte_fallback) steps.push_back({{"type", "ByteFallback"}});
  steps.push_back({{"type", "Fuse"}});
  if (has_prefix()) {
    steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  return sequence("decoders", std::move(steps));
}

Json PieceTokenizer::bpe() const {
  // Only normal pieces come of merges.
  std::vector<std::string> texts;
  std::vector<double> scores;
  for (const auto& piece : model_.pieces) {
    if (piece.type != PieceType::kNormal) continue;
    texts.push_back(piece.text);
    scores.push_back(piece.score);
  }
  Json vocab = Json::object();
  for (const auto& [text, id] : ids_) vocab[text] = id;
  Json model = bpe_model_json(std::move(vocab), piece_merges(texts, scores));
  const std::string unknown = first_of(PieceType::kUnknown);
  if (!unknown.empty()) model["unk_token"] = unknown;
  model["byte_fallback"] = model_.byte_fallback;
  model["fuse_unk"] = true;
  model["ignore_merges"] = !user_defined().empty();
  return model;
}

Json PieceTokenizer::unigram() const {
  double lowest = 0;
  int64_t unknown = 0;
  Json vocab = Json::array();
  for (size_t i = 0; i < model_.pieces.size(); ++i) {
    const auto& piece = model_.pieces[i];
    const bool is_unknown = piece.type == PieceType::kUnknown;
    if (is_unknown) unknown = static_cast<int64_t>(i);
    if (piece.type == PieceType::kNormal) lowest = std::min(lowest, double{piece.score});
    vocab.push_back(Json::array({piece.text, piece.score}));
  }
  // A text that spells the name of a byte is worth less than its characters.
  for (size_t i = 0; i < model_.pieces.size(); ++i) {
    if (model_.pieces[i].type == PieceType::kByte) vocab[i][1] = lowest - kNameOfByte;
  }
  // Added tokens have the ids behind the pieces; what lies between them is no token.
  std::map<int64_t, std::string> behind;
  for (const auto& [text, id] : ids_) {
    if (id >= std::ssize(model_.pieces)) behind[id] = text;
  }
  for (const auto& [id, text] : behind) {
    while (std::ssize(vocab) < id) {
      vocab.push_back(Json::array({"<no token " + std::to_string(vocab.size()) + ">", lowest}));
    }
    vocab.push_back(Json::array({text, lowest}));
  }
  return {{"type", "Unigram"},
          {"unk_id", unknown},
          {"vocab", std::move(vocab)},
          {"byte_fallback", model_.byte_fallback}};
}

MadeTokenizer PieceTokenizer::make() {
  for (size_t i = 0; i < model_.pieces.size(); ++i) {
    ids_.emplace(model_.pieces[i].text, static_cast<int64_t>(i));
  }
  const std::vector<AddedToken> added = all_added_tokens(settings_, own_tokens(), &ids_);
  // Text never becomes one of these, unless the folder lists it among its tokens.
  for (size_t i = 0; is_chatglm() && i < std::size(kChatGlmTokens); ++i) {
    ids_.emplace(kChatGlmTokens[i], static_cast<int64_t>(model_.pieces.size() + i));
  }
  for (const AddedToken& token : added) added_.insert(token.content);
  const std::map<std::string, std::string> fallbacks = {
      {"bos_token", is_deberta() ? "[CLS]" : first_of(PieceType::kControl)},
      {"eos_token", is_deberta() ? "[SEP]" : first_of(PieceType::kControl, 1)},
      {"unk_token", first_of(PieceType::kUnknown)}};
  const auto role = [&](const char* name) { return settings_.role(name, fallbacks.at(name)); };
  MadeTokenizer made;
  made.config = roles_json(settings_, fallbacks);
  made.tokenizer = {
      {"version", "1.0"},
      {"added_tokens", added_tokens_json(added)},
      {"normalizer", normalizer()},
      {"pre_tokenizer", pre_tokenizer()},
      {"post_processor", around_text_json(before_text(role("bos_token")),
                                          token_names(settings_.add_eos.value_or(is_deberta()),
                                                      role("eos_token"), ids_))},
      {"decoder", decoder()},
      {"model", model_.kind == Kind::kBpe ? bpe() : unigram()}};
  return made;
}

}  // namespace

Result<MadeTokenizer> sentencepiece_tokenizer(const SentencePieceModel& model,
                                              const TokenizerSettings& settings,
                                              const std::string& where) {
  const char* kind = model.kind == Kind::kWord   ? "of whole words"
                     : model.kind == Kind::kChar ? "of single characters"
                     : model.whitespace_is_suffix
                         ? "with blanks behind words (treat_whitespace_as_suffix)"
                         : nullptr;
  if (kind == nullptr) return PieceTokenizer(model, settings).make();
  return unsupported(where + ": SentencePiece models " + kind +
                     " are not read; put a tokenizer.json into the folder");
}

}  // namespace foretoken
