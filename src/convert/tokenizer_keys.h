#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "gguf/container/gguf_writer.h"
#include "gguf/model_files.h"

namespace foretoken {

// Adds what a GGUF file says of a model's text: vocabulary, merges or scores, special tokens, what
// is put around a prompt, and the chat template. `vocab_size`: rows of the embedding; ids without a
// token get one that is never used. `eos_ids`: what ends an output. Unsupported names a tokenizer
// that GGUF files cannot describe exactly.
Status add_tokenizer_keys(const ModelFiles& model, int32_t vocab_size,
                          std::span<const int32_t> eos_ids, GgufKeys& keys);

}  // namespace foretoken
