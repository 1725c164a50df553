#include "gguf/vocabulary/tekken_tokenizer.h"

#include <optional>
#include <utility>

#include "gguf/vocabulary/ranked_tokenizer.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Of files that do not list them (versions up to 7), by id.
constexpr const char* kOldSpecial[] = {"<unk>",
                                       "<s>",
                                       "</s>",
                                       "[INST]",
                                       "[/INST]",
                                       "[AVAILABLE_TOOLS]",
                                       "[/AVAILABLE_TOOLS]",
                                       "[TOOL_RESULTS]",
                                       "[/TOOL_RESULTS]",
                                       "[TOOL_CALLS]",
                                       "[IMG]",
                                       "<pad>",
                                       "[IMG_BREAK]",
                                       "[IMG_END]",
                                       "[PREFIX]",
                                       "[MIDDLE]",
                                       "[SUFFIX]",
                                       "[SYSTEM_PROMPT]",
                                       "[/SYSTEM_PROMPT]",
                                       "[TOOL_CONTENT]"};

constexpr int64_t kMaxTokens = int64_t{1} << 24;

std::optional<int64_t> count_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  const auto count = found->get<int64_t>();
  if (count < 0 || count > kMaxTokens) return std::nullopt;
  return count;
}

std::string text_in(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The file's special tokens and fillers up to their number; none where a rank is wrong.
std::optional<std::vector<AddedToken>> special_tokens(const Json& file, int64_t count) {
  std::vector<AddedToken> tokens(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    tokens[static_cast<size_t>(i)] = {i, "<SPECIAL_" + std::to_string(i) + ">"};
  }
  const auto listed = file.find("special_tokens");
  if (listed == file.end() || listed->is_null()) {
    for (size_t i = 0; i < std::size(kOldSpecial) && i < tokens.size(); ++i) {
      tokens[i].content = kOldSpecial[i];
    }
    return tokens;
  }
  if (!listed->is_array()) return std::nullopt;
  for (const Json& token : *listed) {
    if (!token.is_object()) return std::nullopt;
    const auto rank = count_of(token, "rank");
    const std::string text = text_in(token, "token_str");
    if (!rank || *rank >= count || text.empty()) return std::nullopt;
    AddedToken& out = tokens[static_cast<size_t>(*rank)];
    out.content = text;
    out.special = token.value("is_control", Json(true)) != false;
  }
  return tokens;
}

std::optional<std::vector<std::string>> ranked_vocabulary(const Json& file, int64_t count) {
  const auto listed = file.find("vocab");
  if (listed == file.end() || !listed->is_array() || std::ssize(*listed) < count) {
    return std::nullopt;
  }
  std::vector<std::string> tokens(static_cast<size_t>(count));
  for (const Json& token : *listed) {
    if (!token.is_object()) return std::nullopt;
    const auto rank = count_of(token, "rank");
    const auto bytes = decode_base64(text_in(token, "token_bytes"));
    if (!rank || !bytes || bytes->empty()) return std::nullopt;
    if (*rank < count) tokens[static_cast<size_t>(*rank)] = *bytes;
  }
  for (const std::string& token : tokens) {
    if (token.empty()) return std::nullopt;
  }
  return tokens;
}

}  // namespace

Result<MadeTokenizer> tekken_tokenizer(std::string_view json, const TokenizerSettings& settings,
                                       const std::string& where) {
  const auto broken = [&](const char* what) {
    return invalid_argument(where + ": '" + what +
                            "' is missing or wrong; the file is damaged or incomplete, fetch it "
                            "again");
  };
  const Json file = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!file.is_object() || !file.value("config", Json()).is_object()) return broken("config");
  const Json& config = file["config"];
  const auto num_special = count_of(config, "default_num_special_tokens");
  const auto size = count_of(config, "default_vocab_size");
  RankedForm form;
  form.pattern = text_in(config, "pattern");
  if (form.pattern.empty()) return broken("pattern");
  if (!num_special) return broken("default_num_special_tokens");
  if (!size || *size <= *num_special) return broken("default_vocab_size");
  auto special = special_tokens(file, *num_special);
  if (!special) return broken("special_tokens");
  const auto tokens = ranked_vocabulary(file, *size - *num_special);
  if (!tokens) return broken("vocab");
  form.first_id = *num_special;
  form.special = std::move(*special);
  for (const AddedToken& token : form.special) {
    if (token.content == "<s>") form.before = {{token.content, token.id}};
  }
  form.bos_token = "<s>";
  form.eos_token = "</s>";
  return ranked_tokenizer(*tokens, form, settings);
}

}  // namespace foretoken
