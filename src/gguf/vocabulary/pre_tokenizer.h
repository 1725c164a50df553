#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foretoken {

// One cut of a text: at the matches of `regex`, which are pieces of their own beside what lies
// between them; or one that has a name.
struct PreTokenizerStep {
  enum class Kind : uint8_t { kRegex, kGpt2, kDigits, kPunctuation };
  Kind kind = Kind::kRegex;
  std::string_view regex = {};
};

// How byte-level BPE cuts a text before it merges: what GGUF files name and tokenizer.json spells
// out.
struct PreTokenizer {
  std::string_view name;  // tokenizer.ggml.pre
  std::span<const PreTokenizerStep> steps;
  bool ignores_merges = false;  // a whole piece that is a token is taken as it is
  bool composes = false;        // text is brought to NFC first
  bool adds_bos = false;        // where the file does not say
};

// Null for an unknown name.
const PreTokenizer* find_pre_tokenizer(std::string_view name);
// All that are known, for messages.
std::vector<std::string> pre_tokenizer_names();

// The fields `pre_tokenizer` and `normalizer` of tokenizer.json.
nlohmann::json pre_tokenizer_json(const PreTokenizer& pre);
nlohmann::json normalizer_json(const PreTokenizer& pre);

// The one that a tokenizer.json describes; null where GGUF files have no name for it.
const PreTokenizer* match_pre_tokenizer(const nlohmann::json& tokenizer);

}  // namespace foretoken
