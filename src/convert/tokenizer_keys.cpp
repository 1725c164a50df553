#include "convert/tokenizer_keys.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "convert/piece_scores.h"
#include "gguf/vocabulary/pre_tokenizer.h"
#include "model/files/containers/json_file.h"
#include "text/tokenizer_config.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr const char* kUseFolder = "; use the folder as it is";
constexpr std::string_view kSpace = "\u2581";

// tokenizer.ggml.token_type
enum TokenType : int32_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;           // as many
  std::map<std::string, uint32_t> ids;  // of tokens that the tokenizer has
};

Status put_token(const std::string& token, const Json& id, int32_t type, const std::string& where,
                 Vocabulary& vocabulary) {
  const auto size = std::ssize(vocabulary.tokens);
  if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= size) {
    return invalid_argument(where + ": the token '" + token + "' has the id " + id.dump() +
                            ", but the model has " + std::to_string(size) +
                            " ids; the files must be of one model");
  }
  const auto index = id.get<size_t>();
  vocabulary.tokens[index] = token;
  vocabulary.types[index] = type;
  vocabulary.ids[token] = static_cast<uint32_t>(index);
  return {};
}

bool is_byte(const std::string& token) {
  return token.size() == 6 && token.starts_with("<0x") && token.ends_with(">");
}

Result<Vocabulary> read_vocabulary(const Json& tokenizer, int32_t vocab_size, bool byte_fallback,
                                   const std::string& where) {
  Vocabulary vocabulary;
  for (int32_t i = 0; i < vocab_size; ++i) {
    vocabulary.tokens.push_back("[PAD" + std::to_string(i) + "]");
    vocabulary.types.push_back(kUnused);
  }
  const Json unknown = tokenizer["model"].value("unk_token", Json());
  for (const auto& [token, id] : tokenizer["model"]["vocab"].items()) {
    const int32_t type = unknown == token                  ? kUnknown
                         : byte_fallback && is_byte(token) ? kByte
                                                           : kNormal;
    FT_RETURN_IF_ERROR(put_token(token, id, type, where, vocabulary));
  }
  for (const Json& added : tokenizer.value("added_tokens", Json::array())) {
    const bool whole = added.is_object() && added.contains("content") &&
                       added["content"].is_string() && added.contains("id");
    if (!whole) return invalid_argument(where + ": 'added_tokens' is broken; fetch the file again");
    const auto content = added["content"].get<std::string>();
    const bool special = added.value("special", Json(false)) == true;
    const int32_t type = unknown == content ? kUnknown : special ? kControl : kUserDefined;
    FT_RETURN_IF_ERROR(put_token(content, added["id"], type, where, vocabulary));
  }
  return vocabulary;
}

// What a tokenizer puts in front of a prompt and behind it.
struct Ends {
  std::optional<std::string> first;
  std::optional<std::string> last;
};

Status read_ends(const Json& processor, const std::string& where, Ends* ends) {
  if (processor.is_null()) return {};
  const std::string type = processor.is_object() ? processor.value("type", "") : "";
  if (type == "ByteLevel") return {};
  if (type == "Sequence") {
    for (const Json& inner : processor.value("processors", Json::array())) {
      FT_RETURN_IF_ERROR(read_ends(inner, where, ends));
    }
    return {};
  }
  const Json single = processor.is_object() ? processor.value("single", Json()) : Json();
  bool known = type == "TemplateProcessing" && single.is_array();
  bool behind = false;
  for (const Json& part : known ? single : Json::array()) {
    if (part.contains("Sequence")) {
      behind = true;
      continue;
    }
    std::optional<std::string>& end = behind ? ends->last : ends->first;
    known = known && !end && part.contains("SpecialToken");
    if (known) end = part["SpecialToken"].value("id", "");
  }
  if (known) return {};
  return unsupported(where +
                     ": a post_processor that puts more than one token in front of a prompt and "
                     "one behind it cannot be said in a GGUF file" +
                     kUseFolder);
}

// Writes the special tokens as keys.
class SpecialTokens {
 public:
  SpecialTokens(const Vocabulary& vocabulary, const TokenizerConfig& config, GgufKeys& keys,
                std::string where)
      : vocabulary_(vocabulary), config_(config), keys_(keys), where_(std::move(where)) {}

  Status add(const Ends& ends, std::span<const int32_t> eos_ids) {
    std::optional<uint32_t> bos = role("bos_token"), eos = role("eos_token");
    if (ends.first && !bos) bos = id_of(*ends.first);
    add_id("bos", bos);
    add_id("unknown", role("unk_token"));
    add_id("padding", role("pad_token"));
    FT_RETURN_IF_ERROR(add_eos(eos_ids, &eos));
    if ((ends.first && id_of(*ends.first) != bos) || (ends.last && id_of(*ends.last) != eos)) {
      return unsupported(where_ +
                         ": what the post_processor puts around a prompt is not its bos_token and "
                         "eos_token, which a GGUF file cannot say" +
                         kUseFolder);
    }
    keys_.add_flag("tokenizer.ggml.add_bos_token", ends.first.has_value());
    keys_.add_flag("tokenizer.ggml.add_eos_token", ends.last.has_value());
    return {};
  }

 private:
  std::optional<uint32_t> id_of(const std::string& token) const {
    const auto found = vocabulary_.ids.find(token);
    return found == vocabulary_.ids.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<uint32_t> role(const char* name) const {
    const auto found = config_.special_tokens.find(name);
    return found == config_.special_tokens.end() ? std::nullopt : id_of(found->second);
  }
  void add_id(const char* name, std::optional<uint32_t> id) {
    if (id) keys_.add_u32("tokenizer.ggml." + std::string(name) + "_token_id", *id);
  }
  // All ids that end an output find a place: end of sequence, of turn and of message.
  Status add_eos(std::span<const int32_t> eos_ids, std::optional<uint32_t>* eos) {
    std::vector<uint32_t> ids(eos_ids.begin(), eos_ids.end());
    const auto named = std::find(ids.begin(), ids.end(), eos->value_or(UINT32_MAX));
    if (named != ids.end()) std::rotate(ids.begin(), named, named + 1);
    if (ids.empty() && *eos) ids.push_back(**eos);
    if (ids.size() > 3) {
      return unsupported(where_ + ": the model ends outputs with " + std::to_string(ids.size()) +
                         " ids, but a GGUF file has room for 3; shorten eos_token_id in "
                         "generation_config.json");
    }
    constexpr const char* kNames[] = {"eos", "eot", "eom"};
    for (size_t i = 0; i < ids.size(); ++i) add_id(kNames[i], ids[i]);
    if (!ids.empty()) *eos = ids[0];
    return {};
  }

  const Vocabulary& vocabulary_;
  const TokenizerConfig& config_;
  GgufKeys& keys_;
  const std::string where_;
};

Result<std::vector<Merge>> read_merges(const Json& tokenizer, const std::string& where) {
  std::vector<Merge> merges;
  for (const Json& entry : tokenizer["model"].value("merges", Json::array())) {
    if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
      merges.push_back({entry[0].get<std::string>(), entry[1].get<std::string>()});
      continue;
    }
    const auto text = entry.is_string() ? entry.get<std::string>() : std::string();
    const size_t space = text.find(' ');
    if (space == std::string::npos) {
      return invalid_argument(where + ": 'merges' is broken; fetch the file again");
    }
    merges.push_back({text.substr(0, space), text.substr(space + 1)});
  }
  return merges;
}

Status add_byte_level(const Json& tokenizer, const std::string& where, GgufKeys& keys) {
  const PreTokenizer* pre = match_pre_tokenizer(tokenizer);
  if (pre == nullptr) {
    return unsupported(where +
                       ": GGUF files have no name for its pre_tokenizer and normalizer; those of "
                       "Llama 3, Qwen 2 and 3, Tekken, SmolLM and GPT-2 are written" +
                       kUseFolder);
  }
  FT_ASSIGN_OR_RETURN(const std::vector<Merge> merges, read_merges(tokenizer, where));
  std::vector<std::string> lines;
  for (const Merge& merge : merges) lines.push_back(merge.left + " " + merge.right);
  keys.add_text("tokenizer.ggml.model", "gpt2");
  keys.add_text("tokenizer.ggml.pre", pre->name);
  keys.add_texts("tokenizer.ggml.merges", lines);
  return {};
}

// Whether a space stands before the text, from the forms that this has; none for other forms.
std::optional<bool> space_before_text(const Json& tokenizer) {
  const Json replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpace}};
  const Json normalizer = tokenizer.value("normalizer", Json());
  const Json pre = tokenizer.value("pre_tokenizer", Json());
  if (pre.is_object() && pre.value("type", "") == "Metaspace" && normalizer.is_null()) {
    const bool prepends = pre.value("add_prefix_space", true);
    return pre.value("prepend_scheme", prepends ? "always" : "never") != "never";
  }
  if (!pre.is_null() || !normalizer.is_object()) return std::nullopt;
  if (normalizer == replace) return false;
  const Json prepend = {{"type", "Prepend"}, {"prepend", kSpace}};
  const Json steps = normalizer.value("normalizers", Json::array());
  if (steps == Json::array({prepend, replace})) return true;
  return steps == Json::array({replace}) ? std::optional(false) : std::nullopt;
}

Status add_pieces(const Json& tokenizer, const Vocabulary& vocabulary, const std::string& where,
                  GgufKeys& keys) {
  const std::optional<bool> space = space_before_text(tokenizer);
  FT_ASSIGN_OR_RETURN(const std::vector<Merge> merges, read_merges(tokenizer, where));
  std::vector<std::string> pieces = vocabulary.tokens;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!tokenizer["model"]["vocab"].contains(pieces[i])) pieces[i].clear();
  }
  const std::optional<std::vector<float>> scores = piece_scores(pieces, merges);
  if (!space || !scores) {
    return unsupported(where + ": it has byte_fallback, but not the " +
                       (space ? "merges" : "normalizer") +
                       " of a SentencePiece vocabulary as Llama 2 has it" + kUseFolder);
  }
  keys.add_text("tokenizer.ggml.model", "llama");
  keys.add_text("tokenizer.ggml.pre", "default");
  keys.add_f32s("tokenizer.ggml.scores", *scores);
  keys.add_flag("tokenizer.ggml.add_space_prefix", *space);
  return {};
}

// The usual template, and others under names of their own.
void add_chat_templates(const std::map<std::string, std::string>& templates, GgufKeys& keys) {
  std::vector<std::string> names;
  for (const auto& [name, source] : templates) {
    if (name == "default") {
      keys.add_text("tokenizer.chat_template", source);
      continue;
    }
    keys.add_text("tokenizer.chat_template." + name, source);
    names.push_back(name);
  }
  if (!names.empty()) keys.add_texts("tokenizer.chat_templates", names);
}

}  // namespace

Status add_tokenizer_keys(const ModelFiles& model, int32_t vocab_size,
                          std::span<const int32_t> eos_ids, GgufKeys& keys) {
  const std::string where = (model.path() / "tokenizer.json").string();
  FT_ASSIGN_OR_RETURN(const Json tokenizer, read_model_json(model.text(), "tokenizer.json"));
  const Json bpe = tokenizer.value("model", Json());
  const bool is_bpe = bpe.is_object() && bpe.value("type", Json("BPE")) == "BPE" &&
                      bpe.contains("vocab") && bpe["vocab"].is_object();
  if (!is_bpe) {
    return unsupported(where + ": only tokenizers of the type BPE are written to GGUF files" +
                       kUseFolder);
  }
  const bool byte_fallback = bpe.value("byte_fallback", Json(false)) == true;
  FT_ASSIGN_OR_RETURN(const Vocabulary vocabulary,
                      read_vocabulary(tokenizer, vocab_size, byte_fallback, where));
  FT_RETURN_IF_ERROR(byte_fallback ? add_pieces(tokenizer, vocabulary, where, keys)
                                   : add_byte_level(tokenizer, where, keys));
  keys.add_texts("tokenizer.ggml.tokens", vocabulary.tokens);
  keys.add_i32s("tokenizer.ggml.token_type", vocabulary.types);
  FT_ASSIGN_OR_RETURN(const TokenizerConfig config, load_tokenizer_config(model));
  Ends ends;
  FT_RETURN_IF_ERROR(read_ends(tokenizer.value("post_processor", Json()), where, &ends));
  FT_RETURN_IF_ERROR(SpecialTokens(vocabulary, config, keys, where).add(ends, eos_ids));
  add_chat_templates(config.chat_templates, keys);
  return {};
}

}  // namespace foretoken
