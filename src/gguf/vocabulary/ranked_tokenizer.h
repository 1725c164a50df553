#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/vocabulary/tokenizer_settings.h"

namespace foretoken {

// Tokens of byte-level BPE whose order is the order of their merges: tiktoken's vocabularies.
// A tiktoken file has a token in base64 and its rank on each line, ranks from 0 on.
bool is_tiktoken_file(std::string_view bytes);
Result<std::vector<std::string>> parse_tiktoken_file(std::string_view bytes,
                                                     const std::string& where);

// How such a vocabulary is used.
struct RankedForm {
  std::string pattern;    // that cuts a text into pieces
  bool composes = false;  // text is brought to NFC first
  int64_t first_id = 0;   // of rank 0
  std::vector<AddedToken> special;
  TokenNames before;  // put before a text
  std::string bos_token;
  std::string eos_token;
};

// The form of a tiktoken file by its number of tokens, its name and the class of its tokenizer; the
// file itself does not say it. Unsupported where it is none that is known.
Result<RankedForm> find_ranked_form(size_t num_tokens, const std::string& file_name,
                                    const TokenizerSettings& settings, const std::string& where);

// The tokenizer.json of such a vocabulary.
MadeTokenizer ranked_tokenizer(const std::vector<std::string>& tokens, const RankedForm& form,
                               const TokenizerSettings& settings);

}  // namespace foretoken
