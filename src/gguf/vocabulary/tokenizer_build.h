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

// By which expressions the families of byte-level BPE cut a text: Llama 3 and GLM-4 with up to
// three digits in a piece, Qwen with one, and tiktoken's o200k_base.
inline constexpr std::string_view kThreeDigitsPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kOneDigitPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kO200kPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Kimi's: runs of Han are pieces of their own.
inline constexpr std::string_view kHanRunsPattern =
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

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
