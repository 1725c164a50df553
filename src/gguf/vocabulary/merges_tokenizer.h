#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "gguf/vocabulary/tokenizer_settings.h"

namespace foretoken {

// The tokenizer.json of byte-level BPE as GPT-2 published it: vocab.json and merges.txt. Qwen's
// tokenizer cuts otherwise, which `settings` tell. InvalidArgument names a broken file.
Result<MadeTokenizer> merges_tokenizer(std::string_view vocab, std::string_view merges,
                                       const TokenizerSettings& settings, const std::string& where);

}  // namespace foretoken
