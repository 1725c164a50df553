#pragma once
#include <string>

#include "base/result.h"
#include "gguf/vocabulary/sentencepiece_file.h"
#include "gguf/vocabulary/tokenizer_settings.h"

namespace foretoken {

// The tokenizer.json of a SentencePiece model (BPE or unigram, with or without byte fallback). The
// ids of a text are those of SentencePiece itself, apart from tokens that are added to it and from
// the text around them: its begin token, and the space before a piece of text (`settings.legacy`).
// Unsupported names a kind of model that is not read.
Result<MadeTokenizer> sentencepiece_tokenizer(const SentencePieceModel& model,
                                              const TokenizerSettings& settings,
                                              const std::string& where);

}  // namespace foretoken
