#pragma once
#include <string>
#include <vector>

#include "support/folders.h"
#include "text/grammar.h"
#include "text/text_fixtures.h"

namespace foretoken {

// Grammars over the vocabulary of the bundled model. One thread.
class GrammarRig {
 public:
  GrammarRig()
      : tokenizer_(
            load_fixture(std::filesystem::path(foretoken::kSourceFolder) / "models/foretoken-7m")),
        compiler_(tokenizer_->grammar_compiler(tokenizer_->vocab_size(), eos_ids_).value()) {}

  Result<std::shared_ptr<const Grammar>> compile(const StructuredOutputs& wanted) const {
    FT_ASSIGN_OR_RETURN(const GrammarText text, grammar_text(wanted));
    return compiler_->compile(text);
  }

  // Whether the text, token by token, is an output.
  bool accepts(const Grammar& grammar, const std::string& text) const {
    const std::unique_ptr<TokenMask> mask = std::move(grammar.start(eos_ids_, false)).value();
    const auto ids = tokenizer_->encode(text, false);
    for (const int32_t id : ids.value()) {
      if (!allows(*mask, id) || !mask->consume(id).ok()) return false;
    }
    return allows(*mask, kEos);
  }

  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  static constexpr int32_t kEos = 0;
  const std::vector<int32_t> eos_ids_{kEos};

  bool allows(TokenMask& mask, int32_t id) const {
    std::vector<uint32_t> words(static_cast<size_t>(tokenizer_->vocab_size() + 31) / 32);
    return mask.fill(words).ok() && (words[static_cast<size_t>(id) / 32] >> (id % 32) & 1u) != 0;
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<GrammarCompiler> compiler_;
};

}  // namespace foretoken
