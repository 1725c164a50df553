#pragma once
#include <filesystem>
#include <string>

#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken::test {

// A byte-level tokenizer of few tokens.
inline constexpr const char* kSmallTokenizer = R"({
  "added_tokens": [{"id": 0, "content": "<s>", "special": true}],
  "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
  "post_processor": null,
  "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "vocab": {"<s>": 0, "a": 1, "b": 2, "ab": 3}, "merges": ["a b"]}})";

// Puts a model of tests/golden/architectures and that tokenizer into a folder.
inline void copy_golden(const std::string& name, const ScratchFolder& folder) {
  const auto from =
      std::filesystem::path(foretoken::kSourceFolder) / "tests/golden/architectures" / name;
  for (const char* file : {"config.json", "model.safetensors"}) {
    std::filesystem::copy(from / file, folder.file(file));
  }
  folder.write("tokenizer.json", kSmallTokenizer);
}

}  // namespace foretoken::test
