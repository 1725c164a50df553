#include "gguf/vocabulary/file_vocabulary.h"

#include <utility>

#include "base/log.h"
#include "gguf/vocabulary/tokenizer_build.h"

namespace foretoken {

using Json = nlohmann::json;

Result<GgufVocabulary> read_gguf_vocabulary(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const auto* tokens, file.texts("tokenizer.ggml.tokens"));
  if (tokens == nullptr || tokens->empty()) {
    return file.error("it holds no tokens (tokenizer.ggml.tokens); convert the model again");
  }
  GgufVocabulary vocabulary{*tokens, {}};
  FT_ASSIGN_OR_RETURN(vocabulary.types, file.integers("tokenizer.ggml.token_type"));
  if (vocabulary.types.empty()) {
    vocabulary.types.assign(tokens->size(), static_cast<int64_t>(GgufTokenType::kNormal));
  }
  if (vocabulary.types.size() != tokens->size()) {
    return file.error("tokenizer.ggml.token_type has " + std::to_string(vocabulary.types.size()) +
                      " entries for " + std::to_string(tokens->size()) +
                      " tokens; convert the model again");
  }
  return vocabulary;
}

Json gguf_added_tokens(const GgufVocabulary& vocabulary) {
  std::vector<AddedToken> added;
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const bool is_user_defined = vocabulary.is_of(i, GgufTokenType::kUserDefined);
    const bool is_special = vocabulary.is_of(i, GgufTokenType::kControl) ||
                            vocabulary.is_of(i, GgufTokenType::kUnknown);
    if (!is_user_defined && !is_special) continue;
    added.push_back(
        {.id = static_cast<int64_t>(i), .content = vocabulary.tokens[i], .special = is_special});
  }
  return added_tokens_json(std::move(added));
}

Json gguf_token_ids(const GgufVocabulary& vocabulary) {
  Json ids = Json::object();
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) ids.emplace(vocabulary.tokens[i], i);
  return ids;
}

Result<std::string> gguf_token(const GgufFile& file, const GgufVocabulary& vocabulary,
                               const std::string& key) {
  FT_ASSIGN_OR_RETURN(const auto id, file.integer(key));
  if (!id) return std::string();
  if (*id < 0 || *id >= std::ssize(vocabulary.tokens)) {
    FT_LOG(warn, "{}: '{}' is {}, beyond the vocabulary, and counts as none", file.path(), key,
           *id);
    return std::string();
  }
  return vocabulary.tokens[static_cast<size_t>(*id)];
}

}  // namespace foretoken
