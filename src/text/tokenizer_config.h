#pragma once
#include <map>
#include <string>

#include "base/result.h"
#include "gguf/model_files.h"

namespace foretoken {

// What a Hugging Face model folder says about its text beside tokenizer.json.
struct TokenizerConfig {
  // Texts of the special tokens by role: bos_token, eos_token, unk_token, pad_token, ...
  std::map<std::string, std::string> special_tokens;
  // Jinja sources by name; the usual one is "default".
  std::map<std::string, std::string> chat_templates;
  // Special tokens written out in a text are text like any other.
  bool split_special_tokens = false;
};

// Reads tokenizer_config.json, special_tokens_map.json and chat_template.jinja (or .json) and
// additional_chat_templates/*.jinja as far as they exist. A template file beats the template inside
// tokenizer_config.json. Fails on a broken file, with its name.
Result<TokenizerConfig> load_tokenizer_config(const ModelFiles& model);

}  // namespace foretoken
