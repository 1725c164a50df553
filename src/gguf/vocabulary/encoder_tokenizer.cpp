#include "gguf/vocabulary/encoder_tokenizer.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/vocabulary/tokenizer_build.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kWordBegin = "\u2581";
constexpr const char* kKey = "tokenizer.ggml.";

// A token with a role: under its key, or where files leave that out, as llama.cpp has it.
struct RoleToken {
  const char* key;  // behind tokenizer.ggml.
  int64_t usual;
};

constexpr RoleToken kWordPieceRoles[] = {{"bos_token_id", 101},
                                         {"seperator_token_id", 102},
                                         {"unknown_token_id", 100},
                                         {"padding_token_id", 0},
                                         {"mask_token_id", 103}};

// -1 where the vocabulary has no such id.
Result<int64_t> id_of_role(const GgufFile& file, const GgufVocabulary& vocabulary,
                           const RoleToken& role) {
  FT_ASSIGN_OR_RETURN(const auto id, file.integer(kKey + std::string(role.key)));
  const int64_t found = id.value_or(role.usual);
  return found >= 0 && found < std::ssize(vocabulary.tokens) ? found : -1;
}

// As folders write a token. Files from before types were written have [CLS] as it is, too.
std::string folder_piece(const GgufVocabulary& vocabulary, size_t id) {
  const std::string& text = vocabulary.tokens[id];
  if (text.starts_with(kWordBegin)) return text.substr(kWordBegin.size());
  const bool in_brackets = text.size() > 2 && text.starts_with("[") && text.ends_with("]");
  const bool is_plain = in_brackets || vocabulary.is_of(id, GgufTokenType::kControl) ||
                        vocabulary.is_of(id, GgufTokenType::kUnknown);
  return is_plain ? text : "##" + text;
}

using TokenName = TokenNames::value_type;

Json special_step(const TokenName& token, int kind) {
  return {{"SpecialToken", {{"id", token.first}, {"type_id", kind}}}};
}

Json sequence_step(const char* name, int kind) {
  return {{"Sequence", {{"id", name}, {"type_id", kind}}}};
}

// A text between two marks, and a pair with so many marks between its texts.
Json around_pairs(const TokenName& first, const TokenName& last, int marks) {
  Json single = Json::array({special_step(first, 0), sequence_step("A", 0), special_step(last, 0)});
  Json pair = single;
  if (marks == 2) pair.push_back(special_step(last, 0));
  pair.push_back(sequence_step("B", 1));
  pair.push_back(special_step(last, 1));
  Json special = Json::object();
  for (const auto& [name, id] : {first, last}) {
    special[name] = {{"id", name}, {"ids", Json::array({id})}, {"tokens", Json::array({name})}};
  }
  return {{"type", "TemplateProcessing"},
          {"single", std::move(single)},
          {"pair", std::move(pair)},
          {"special_tokens", std::move(special)}};
}

Result<Json> bert_normalizer(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const auto lower, file.flag("tokenizer.ggml.normalizer.lowercase"));
  FT_ASSIGN_OR_RETURN(const auto accents, file.flag("tokenizer.ggml.normalizer.strip_accents"));
  return Json{{"type", "BertNormalizer"},
              {"clean_text", true},
              {"handle_chinese_chars", true},
              {"strip_accents", accents.value_or(lower.value_or(true))},
              {"lowercase", lower.value_or(true)}};
}

// Bytes that files keep as numbers.
Result<std::string> characters_table(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                      file.integers("tokenizer.ggml.precompiled_charsmap"));
  std::string bytes;
  bytes.reserve(numbers.size());
  for (const int64_t number : numbers) bytes += static_cast<char>(number);
  return bytes;
}

}  // namespace

Result<Json> wordpiece_tokenizer(const GgufFile& file, const GgufVocabulary& vocabulary) {
  std::vector<std::string> pieces;
  Json ids = Json::object();
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    pieces.push_back(folder_piece(vocabulary, i));
    ids.emplace(pieces.back(), i);
  }
  std::vector<int64_t> roles;
  for (const RoleToken& role : kWordPieceRoles) {
    FT_ASSIGN_OR_RETURN(roles.emplace_back(), id_of_role(file, vocabulary, role));
  }
  if (*std::min_element(roles.begin(), roles.begin() + 3) < 0) {
    return file.error(
        "the ids of [CLS], [SEP] or [UNK] (tokenizer.ggml.bos_token_id, "
        "seperator_token_id, unknown_token_id) lie beyond its " +
        std::to_string(pieces.size()) + " tokens; convert the model again");
  }
  std::vector<AddedToken> added;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool has_role = std::ranges::count(roles, static_cast<int64_t>(i)) > 0;
    const bool special = has_role || vocabulary.is_of(i, GgufTokenType::kControl);
    if (!special && !vocabulary.is_of(i, GgufTokenType::kUserDefined)) continue;
    added.push_back({.id = static_cast<int64_t>(i), .content = pieces[i], .special = special});
  }
  const auto named = [&](size_t role) {
    return TokenName(pieces[static_cast<size_t>(roles[role])], roles[role]);
  };
  FT_ASSIGN_OR_RETURN(Json normalizer, bert_normalizer(file));
  return Json{{"version", "1.0"},
              {"added_tokens", added_tokens_json(std::move(added))},
              {"normalizer", std::move(normalizer)},
              {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
              {"post_processor", around_pairs(named(0), named(1), 1)},
              {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
              {"model",
               {{"type", "WordPiece"},
                {"unk_token", named(2).first},
                {"continuing_subword_prefix", "##"},
                {"max_input_chars_per_word", 100},
                {"vocab", std::move(ids)}}}};
}

Result<Json> unigram_tokenizer(const GgufFile& file, const GgufVocabulary& vocabulary) {
  FT_ASSIGN_OR_RETURN(const std::vector<double> scores, file.numbers("tokenizer.ggml.scores"));
  if (scores.size() != vocabulary.tokens.size()) {
    return file.error("tokenizer.ggml.scores has " + std::to_string(scores.size()) +
                      " entries for " + std::to_string(vocabulary.tokens.size()) +
                      " tokens; convert the model again");
  }
  Json pieces = Json::array();
  for (size_t i = 0; i < scores.size(); ++i) {
    pieces.push_back(Json::array({vocabulary.tokens[i], scores[i]}));
  }
  std::vector<int64_t> roles;
  for (const RoleToken& role : {RoleToken{"bos_token_id", -1}, RoleToken{"eos_token_id", 1},
                                RoleToken{"unknown_token_id", 2}}) {
    FT_ASSIGN_OR_RETURN(roles.emplace_back(), id_of_role(file, vocabulary, role));
  }
  if (*std::min_element(roles.begin(), roles.end()) < 0) {
    return file.error(
        "the ids of its first, last or unknown token (tokenizer.ggml.bos_token_id, "
        "eos_token_id, unknown_token_id) are missing or lie beyond its " +
        std::to_string(scores.size()) + " tokens; convert the model again");
  }
  const auto named = [&](size_t role) {
    return TokenName(vocabulary.tokens[static_cast<size_t>(roles[role])], roles[role]);
  };
  FT_ASSIGN_OR_RETURN(const std::string table, characters_table(file));
  FT_ASSIGN_OR_RETURN(const int marks, gguf_pair_marks(file));
  const Json spaces = {{"type", "Metaspace"},
                       {"replacement", kWordBegin},
                       {"prepend_scheme", "always"},
                       {"split", true}};
  const Json normalizer =
      table.empty() ? Json()
                    : Json{{"type", "Precompiled"}, {"precompiled_charsmap", encode_base64(table)}};
  return Json{{"version", "1.0"},
              {"added_tokens", gguf_added_tokens(vocabulary)},
              {"normalizer", normalizer},
              {"pre_tokenizer",
               {{"type", "Sequence"},
                {"pretokenizers", Json::array({{{"type", "WhitespaceSplit"}}, spaces})}}},
              {"post_processor", around_pairs(named(0), named(1), marks)},
              {"decoder", spaces},
              {"model", {{"type", "Unigram"}, {"unk_id", roles[2]}, {"vocab", std::move(pieces)}}}};
}

Result<int> gguf_pair_marks(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const auto kind, file.text("tokenizer.ggml.model"));
  if (kind == "bert") return 1;
  FT_ASSIGN_OR_RETURN(const auto pre, file.text("tokenizer.ggml.pre"));
  FT_ASSIGN_OR_RETURN(const auto says, file.flag("tokenizer.ggml.add_sep_token"));
  // Files from before the key are XLM-RoBERTa's, RoBERTa's and Jina's.
  constexpr std::string_view kTwo[] = {"roberta-bpe", "jina-v1-en", "jina-v2-code"};
  const bool usual = kind == "t5" || std::ranges::count(kTwo, pre.value_or("")) > 0;
  return says.value_or(usual) ? 2 : 1;
}

}  // namespace foretoken
