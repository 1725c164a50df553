#include "gguf/hf_tokenizer.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/piece_merges.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// tokenizer.ggml.token_type
enum TokenType : int64_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

constexpr const char* kSpace = "\u2581";

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct PreTokenizer {
  std::string_view name;   // tokenizer.ggml.pre
  std::string_view regex;  // empty: that of GPT-2
  bool ignores_merges;     // a whole piece that is a token is taken as it is
  bool composes;           // text is brought to NFC first
  bool splits_digits;      // each is a piece of its own
};

constexpr PreTokenizer kPreTokenizers[] = {
    {"llama-bpe", kLlama3, true, false, false}, {"llama3", kLlama3, true, false, false},
    {"qwen2", kQwen2, false, true, false},      {"tekken", kTekken, true, false, false},
    {"gpt-2", "", false, false, false},         {"default", "", false, false, false},
    {"smollm", "", false, false, true},         {"starcoder", "", false, false, true},
};

Result<const PreTokenizer*> pre_tokenizer(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const auto name, file.text("tokenizer.ggml.pre"));
  std::string known;
  for (const PreTokenizer& pre : kPreTokenizers) {
    if (name.value_or("default") == pre.name) return &pre;
    known += (known.empty() ? "" : ", ") + std::string(pre.name);
  }
  return unsupported(file.path() + ": the pre-tokenizer '" + *name + "' is not known (" + known +
                     " are); put the model's tokenizer.json beside the file's folder form");
}

// What both kinds share.
struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<int64_t> types;  // as many
};

Result<Vocabulary> read_vocabulary(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const auto* tokens, file.texts("tokenizer.ggml.tokens"));
  if (tokens == nullptr || tokens->empty()) {
    return file.error("it holds no tokens (tokenizer.ggml.tokens); convert the model again");
  }
  Vocabulary vocabulary{*tokens, {}};
  FT_ASSIGN_OR_RETURN(vocabulary.types, file.integers("tokenizer.ggml.token_type"));
  if (vocabulary.types.empty()) vocabulary.types.assign(tokens->size(), kNormal);
  if (vocabulary.types.size() != tokens->size()) {
    return file.error("tokenizer.ggml.token_type has " + std::to_string(vocabulary.types.size()) +
                      " entries for " + std::to_string(tokens->size()) +
                      " tokens; convert the model again");
  }
  return vocabulary;
}

Json added_tokens(const Vocabulary& vocabulary) {
  Json added = Json::array();
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const int64_t type = vocabulary.types[i];
    if (type != kControl && type != kUserDefined && type != kUnknown) continue;
    added.push_back({{"id", i},
                     {"content", vocabulary.tokens[i]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", type != kUserDefined}});
  }
  return added;
}

Json ids_of(const Vocabulary& vocabulary) {
  Json ids = Json::object();
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) ids.emplace(vocabulary.tokens[i], i);
  return ids;
}

Result<std::string> token_of(const GgufFile& file, const Vocabulary& vocabulary,
                             const std::string& key) {
  FT_ASSIGN_OR_RETURN(const auto id, file.integer(key));
  if (!id) return std::string();
  if (*id < 0 || *id >= std::ssize(vocabulary.tokens)) {
    return file.error("'" + key + "' is " + std::to_string(*id) + ", beyond the vocabulary");
  }
  return vocabulary.tokens[static_cast<size_t>(*id)];
}

// Puts the tokens around a text that the model expects there.
Result<Json> post_processor(const GgufFile& file, const Vocabulary& vocabulary, bool adds_bos) {
  FT_ASSIGN_OR_RETURN(const auto bos_flag, file.flag("tokenizer.ggml.add_bos_token"));
  FT_ASSIGN_OR_RETURN(const auto eos_flag, file.flag("tokenizer.ggml.add_eos_token"));
  Json single = Json::array(), pair = Json::array(), special = Json::object();
  const auto add = [&](const std::string& key) -> Status {
    FT_ASSIGN_OR_RETURN(const std::string token, token_of(file, vocabulary, key));
    FT_ASSIGN_OR_RETURN(const auto id, file.integer(key));
    if (token.empty()) return {};
    single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
    special[token] = {{"id", token}, {"ids", Json::array({*id})}, {"tokens", Json::array({token})}};
    return {};
  };
  if (bos_flag.value_or(adds_bos)) FT_RETURN_IF_ERROR(add("tokenizer.ggml.bos_token_id"));
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  if (eos_flag.value_or(false)) FT_RETURN_IF_ERROR(add("tokenizer.ggml.eos_token_id"));
  if (special.empty()) return Json();
  pair = single;
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
  return Json{{"type", "TemplateProcessing"},
              {"single", single},
              {"pair", pair},
              {"special_tokens", special}};
}

Json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

Json split_then_bytes(const PreTokenizer& pre) {
  Json first = {{"type", "Split"},
                {"pattern", {{"Regex", pre.regex}}},
                {"behavior", "Isolated"},
                {"invert", false}};
  if (pre.splits_digits) first = {{"type", "Digits"}, {"individual_digits", true}};
  if (pre.regex.empty() && !pre.splits_digits) return byte_level(true);
  return {{"type", "Sequence"},
          {"pretokenizers", Json::array({first, byte_level(pre.splits_digits)})}};
}

Json bpe(const Vocabulary& vocabulary, Json merges) {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", ids_of(vocabulary)},
          {"merges", std::move(merges)}};
}

Result<Json> byte_level_tokenizer(const GgufFile& file, const Vocabulary& vocabulary) {
  FT_ASSIGN_OR_RETURN(const PreTokenizer* pre, pre_tokenizer(file));
  FT_ASSIGN_OR_RETURN(const auto* merges, file.texts("tokenizer.ggml.merges"));
  if (merges == nullptr) {
    return file.error("it holds no merges (tokenizer.ggml.merges); convert the model again");
  }
  Json model = bpe(vocabulary, *merges);
  model["ignore_merges"] = pre->ignores_merges;
  FT_ASSIGN_OR_RETURN(Json post, post_processor(file, vocabulary, pre->regex == kLlama3));
  return Json{{"version", "1.0"},
              {"added_tokens", added_tokens(vocabulary)},
              {"normalizer", pre->composes ? Json{{"type", "NFC"}} : Json()},
              {"pre_tokenizer", split_then_bytes(*pre)},
              {"post_processor", post.is_null() ? byte_level(true) : std::move(post)},
              {"decoder", byte_level(true)},
              {"model", std::move(model)}};
}

Json replace(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

Result<Json> piece_tokenizer(const GgufFile& file, const Vocabulary& vocabulary) {
  FT_ASSIGN_OR_RETURN(const std::vector<double> scores, file.numbers("tokenizer.ggml.scores"));
  if (scores.size() != vocabulary.tokens.size()) {
    return file.error("tokenizer.ggml.scores has " + std::to_string(scores.size()) +
                      " entries for " + std::to_string(vocabulary.tokens.size()) +
                      " tokens; convert the model again");
  }
  FT_ASSIGN_OR_RETURN(const auto space, file.flag("tokenizer.ggml.add_space_prefix"));
  FT_ASSIGN_OR_RETURN(const std::string unknown,
                      token_of(file, vocabulary, "tokenizer.ggml.unknown_token_id"));
  FT_ASSIGN_OR_RETURN(Json post, post_processor(file, vocabulary, true));
  Json model = bpe(vocabulary, piece_merges(vocabulary.tokens, scores));
  model["byte_fallback"] = true;
  model["fuse_unk"] = true;
  if (!unknown.empty()) model["unk_token"] = unknown;
  Json normalizers = Json::array();
  if (space.value_or(true)) normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
  normalizers.push_back(replace(" ", kSpace));
  Json decoders =
      Json::array({replace(kSpace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  if (space.value_or(true)) {
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  return Json{{"version", "1.0"},
              {"added_tokens", added_tokens(vocabulary)},
              {"normalizer", {{"type", "Sequence"}, {"normalizers", normalizers}}},
              {"pre_tokenizer", nullptr},
              {"post_processor", std::move(post)},
              {"decoder", {{"type", "Sequence"}, {"decoders", decoders}}},
              {"model", std::move(model)}};
}

}  // namespace

Result<Json> gguf_tokenizer(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const auto kind, file.text("tokenizer.ggml.model"));
  FT_ASSIGN_OR_RETURN(const Vocabulary vocabulary, read_vocabulary(file));
  if (kind == "gpt2") return byte_level_tokenizer(file, vocabulary);
  if (kind == "llama") return piece_tokenizer(file, vocabulary);
  return unsupported(file.path() + ": tokenizers of the kind '" + kind.value_or("") +
                     "' are not read; gpt2 and llama are");
}

Result<Json> gguf_tokenizer_config(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const Vocabulary vocabulary, read_vocabulary(file));
  Json config = Json::object();
  for (const auto& [key, name] :
       {std::pair("bos", "bos_token"), std::pair("eos", "eos_token"),
        std::pair("unknown", "unk_token"), std::pair("padding", "pad_token")}) {
    FT_ASSIGN_OR_RETURN(
        const std::string token,
        token_of(file, vocabulary, "tokenizer.ggml." + std::string(key) + "_token_id"));
    if (!token.empty()) config[name] = token;
  }
  FT_ASSIGN_OR_RETURN(const auto source, file.text("tokenizer.chat_template"));
  if (source) config["chat_template"] = *source;
  return config;
}

}  // namespace foretoken
