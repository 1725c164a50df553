#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretoken {

// What a tokenizer.json is made of, for tokenizers that are published in other forms.

struct AddedToken {
  int64_t id = 0;
  std::string content;
  bool special = true;
  bool lstrip = false;
  bool rstrip = false;
  bool single_word = false;
  bool normalized = false;
};

// A tokenizer.json, and what stands in for a tokenizer_config.json where there is none.
struct MadeTokenizer {
  nlohmann::json tokenizer;
  nlohmann::json config = nlohmann::json::object();
};

// The field `added_tokens`, by ascending id.
nlohmann::json added_tokens_json(std::vector<AddedToken> tokens);

// The post-processor that puts tokens around a text; null where there are none.
using TokenNames = std::vector<std::pair<std::string, int64_t>>;
nlohmann::json around_text_json(const TokenNames& before, const TokenNames& after);

// A model of BPE without unknown tokens.
nlohmann::json bpe_model_json(nlohmann::json vocab, nlohmann::json merges);

// A step of ByteLevel over pieces that are cut already, or cut as GPT-2's are.
nlohmann::json byte_level_step(bool use_regex, bool add_prefix_space = false);
// A step that cuts a text by a regular expression.
nlohmann::json split_step(std::string_view regex);

// Bytes as the characters that byte-level vocabularies write for them (GPT-2's table).
std::string byte_level_text(std::string_view bytes);

// None for what is no base64.
std::optional<std::string> decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);

}  // namespace foretoken
