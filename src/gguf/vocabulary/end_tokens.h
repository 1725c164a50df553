#pragma once
#include <cstdint>
#include <vector>

#include "gguf/vocabulary/file_vocabulary.h"

namespace foretoken {

// Ids of the tokens that end an answer by their texts, ascending. Converters write one end
// (tokenizer.ggml.eos_token_id) where a folder's generation_config.json has a list, and for Phi's
// and many tuned models that is not the end of a turn; llama.cpp goes by the texts, too.
std::vector<int64_t> gguf_end_tokens(const GgufVocabulary& vocabulary);

}  // namespace foretoken
