#pragma once
#include <filesystem>
#include <memory>

#include "bench/samples/token_coder.h"
#include "support/folders.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace foretoken::bench {

// The tokenizer of the bundled model, with a chat template of its own.
struct BundledCoder {
  std::filesystem::path folder =
      std::filesystem::path(foretoken::kSourceFolder) / "models/foretoken-7m";
  std::unique_ptr<Tokenizer> tokenizer = load_hf_tokenizer(folder).value();
  ChatTemplate chat_template =
      ChatTemplate::load(folder, "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}")
          .value();
  TokenCoder coder = make_token_coder(*tokenizer, &chat_template);
};

}  // namespace foretoken::bench
