#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "gguf/vocabulary/tokenizer_build.h"

namespace foretoken {

// Tokenizers of model folders without a tokenizer.json: tekken.json, SentencePiece's
// tokenizer.model (also spiece.model, spm.model and tokenizer.model.v3), tiktoken's *.tiktoken,
// tiktoken.model and tokenizer.model, RWKV's World vocabulary, PLaMo's tokenizer.jsonl, vocab.json
// with merges.txt.

// Whether a folder's file of this name is one of them, or a part of one.
bool is_vocabulary_file(const std::string& name);

// The name of the vocabulary's file; empty where there is none.
std::string folder_vocabulary(const std::filesystem::path& folder);

// None where the folder has no such file. Errors name the file and the remedy.
Result<std::optional<MadeTokenizer>> folder_tokenizer(const std::filesystem::path& folder);

}  // namespace foretoken
