#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "gguf/vocabulary/tokenizer_settings.h"

namespace foretoken {

// PLaMo's vocabulary: a line of JSON for each token, its text, its score and, of those that are no
// usual pieces of text, its kind.
inline constexpr const char* kScoredVocabulary = "tokenizer.jsonl";

// A text is cut into the pieces whose scores have the highest sum, and characters that are no
// pieces into bytes. InvalidArgument names a line that is none.
Result<MadeTokenizer> scored_tokenizer(std::string_view lines, const TokenizerSettings& settings,
                                       const std::string& where);

}  // namespace foretoken
