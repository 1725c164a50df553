#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "gguf/vocabulary/tokenizer_settings.h"

namespace foretoken {

// The tokenizer.json of Mistral's tekken.json: a ranked vocabulary behind special tokens, its
// pattern beside it. InvalidArgument names what is missing in the file.
Result<MadeTokenizer> tekken_tokenizer(std::string_view json, const TokenizerSettings& settings,
                                       const std::string& where);

}  // namespace foretoken
