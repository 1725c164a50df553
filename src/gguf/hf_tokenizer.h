#pragma once
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "gguf/container/gguf_file.h"

namespace foretoken {

// What tokenizer.json of the same model would say: byte-level BPE ("gpt2", with the pre-tokenizers
// of Llama 3, Qwen 2, Mistral's Tekken and GPT-2) and SentencePiece BPE ("llama"). Unsupported
// names other kinds.
Result<nlohmann::json> gguf_tokenizer(const GgufFile& file);

// The same for tokenizer_config.json: special tokens and the chat template.
Result<nlohmann::json> gguf_tokenizer_config(const GgufFile& file);

}  // namespace foretoken
