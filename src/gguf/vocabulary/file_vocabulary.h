#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/container/gguf_file.h"

namespace foretoken {

// tokenizer.ggml.token_type
enum class GgufTokenType : int64_t {
  kNormal = 1,
  kUnknown,
  kControl,
  kUserDefined,
  kUnused,
  kByte
};

// The tokens of a GGUF file by id.
struct GgufVocabulary {
  std::vector<std::string> tokens;
  std::vector<int64_t> types;  // as many, of GgufTokenType

  bool is_of(size_t id, GgufTokenType type) const {
    return types[id] == static_cast<int64_t>(type);
  }
};

// InvalidArgument for a file without tokens, or with as many types as tokens.
Result<GgufVocabulary> read_gguf_vocabulary(const GgufFile& file);

// The field `added_tokens` of a tokenizer.json, and its tokens' ids by their texts.
nlohmann::json gguf_added_tokens(const GgufVocabulary& vocabulary);
nlohmann::json gguf_token_ids(const GgufVocabulary& vocabulary);

// The text of the token whose id stands under `key`; empty where there is none. An id outside the
// vocabulary is none, as llama.cpp has it: converters write -1 as 4294967295.
Result<std::string> gguf_token(const GgufFile& file, const GgufVocabulary& vocabulary,
                               const std::string& key);

}  // namespace foretoken
