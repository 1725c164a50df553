// A file's bytes against the readers of tokenizers in forms other than tokenizer.json.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gguf/vocabulary/merges_tokenizer.h"
#include "gguf/vocabulary/ranked_tokenizer.h"
#include "gguf/vocabulary/sentencepiece_file.h"
#include "gguf/vocabulary/sentencepiece_tokenizer.h"
#include "gguf/vocabulary/tekken_tokenizer.h"

namespace {

const std::string kWhere = "the file";

// An error is one sentence that names the file.
void judge(const foretoken::Status& status) {
  if (!status.ok() && status.message().find(kWhere) == std::string::npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const foretoken::TokenizerSettings settings;
  const auto pieces = foretoken::parse_sentencepiece_file(bytes, kWhere);
  judge(pieces.status());
  if (pieces.ok()) {
    judge(foretoken::sentencepiece_tokenizer(pieces.value(), settings, kWhere).status());
  }
  const auto tokens = foretoken::parse_tiktoken_file(bytes, kWhere);
  judge(tokens.status());
  if (tokens.ok()) {
    const auto form =
        foretoken::find_ranked_form(tokens.value().size(), "qwen.tiktoken", settings, kWhere);
    judge(form.status());
    foretoken::ranked_tokenizer(tokens.value(), form.value(), settings);
  }
  judge(foretoken::tekken_tokenizer(bytes, settings, kWhere).status());
  judge(foretoken::merges_tokenizer(bytes, "a b\n", settings, kWhere).status());
  judge(foretoken::merges_tokenizer(R"({"a": 0})", bytes, settings, kWhere).status());
  return 0;
}
