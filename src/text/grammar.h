#pragma once
#include <foretoken/request.h>
#include <foretoken_text.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/token_mask.h"

namespace foretoken {

// A form of output as the text crate takes it.
struct GrammarText {
  uint32_t kind = FT_GRAMMAR_JSON_SCHEMA;
  std::string text;
  std::string whitespace_pattern;
  bool no_whitespace = false;
  bool no_additional_properties = false;
  bool lenient_schemas = false;
  std::string reasoning_ends;  // a JSON array of texts, or empty
  bool space_after_reasoning = false;

  // Equal exactly for equal grammars.
  std::string key() const;
};

// InvalidArgument, with the field and the remedy, unless exactly one form is named and the options
// go with it. What the form's own text says is judged by compiling it.
Result<GrammarText> grammar_text(const StructuredOutputs& wanted);

// A compiled grammar. Any thread.
class Grammar {
 public:
  explicit Grammar(FtGrammar* grammar) : grammar_(grammar, ft_grammar_free) {}

  // At the beginning of an output. `ignore_eos`: EOS ids are allowed only where nothing else is.
  Result<std::unique_ptr<TokenMask>> start(const std::vector<int32_t>& eos_ids,
                                           bool ignore_eos) const;

 private:
  const std::unique_ptr<FtGrammar, void (*)(FtGrammar*)> grammar_;
  mutable std::mutex mutex_;  // the crate's prototype is copied by one thread at a time
};

// Compiles grammars over a model's vocabulary. Any thread.
class GrammarCompiler {
 public:
  explicit GrammarCompiler(FtGrammarEnv* env) : env_(env, ft_grammar_env_free) {}

  // InvalidArgument with llguidance's own words where the grammar is wrong, too large or asks for
  // what is not supported. Takes milliseconds, for hostile texts seconds.
  Result<std::shared_ptr<const Grammar>> compile(const GrammarText& text) const;

 private:
  const std::unique_ptr<FtGrammarEnv, void (*)(FtGrammarEnv*)> env_;
};

}  // namespace foretoken
