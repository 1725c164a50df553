#pragma once
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "gguf/container/gguf_file.h"
#include "gguf/vocabulary/file_vocabulary.h"

namespace foretoken {

// The tokenizer.json of an encoder in a GGUF file. Errors name the file and the key.

// BERT's: words in lower case unless the file says otherwise, cut greedily into the longest pieces,
// between [CLS] and [SEP] (tokenizer.ggml.model "bert"). Files mark what begins a word, where
// folders mark what does not.
Result<nlohmann::json> wordpiece_tokenizer(const GgufFile& file, const GgufVocabulary& vocabulary);

// SentencePiece's unigram as XLM-RoBERTa has it (tokenizer.ggml.model "t5"): the cut of a word
// whose scores sum to the most, after the file's own table of characters, between <s> and </s>.
Result<nlohmann::json> unigram_tokenizer(const GgufFile& file, const GgufVocabulary& vocabulary);

// How many marks stand between the texts of a pair: 2 as RoBERTa has it, or 1.
Result<int> gguf_pair_marks(const GgufFile& file);

}  // namespace foretoken
