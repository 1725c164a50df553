#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/model_files.h"

namespace foretoken {

class GrammarCompiler;
class TokenTable;

// Text to token ids and back. All functions may be called by any number of threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // `text` must be UTF-8. `add_special_tokens` adds what the model expects around a prompt, such as
  // BOS; leave it out for text that a chat template made. Special tokens written out in the text
  // become their ids either way.
  virtual Result<std::vector<int32_t>> encode(std::string_view text,
                                              bool add_special_tokens) const = 0;

  // Bytes that are not UTF-8 come out as U+FFFD. Ids beyond the vocabulary are left out (models pad
  // their embedding); a negative id is an error.
  virtual Result<std::string> decode(std::span<const int32_t> ids,
                                     bool skip_special_tokens) const = 0;

  // One more than the largest id. The model's logits may be wider.
  virtual int32_t vocab_size() const = 0;

  // By the token's name in the vocabulary, which is not always its text ("Ġthe" for " the").
  virtual std::optional<int32_t> token_to_id(std::string_view token) const = 0;
  virtual std::optional<std::string> id_to_token(int32_t id) const = 0;

  // The bytes that the token alone stands for (" the" for "Ġthe"), which may be a part of a
  // character; of an added token its text. None outside the vocabulary.
  virtual std::optional<std::string> token_bytes(int32_t id) const = 0;

  // The tokens' bytes of a tokenizer whose decode only joins them (byte-level BPE), or null. Lives
  // as long as the tokenizer.
  virtual const TokenTable* joined_bytes() const = 0;

  // The byte of a token such as "<0x0A>", which decoding joins with the byte tokens around it; none
  // for other tokens and for tokenizers without byte fallback.
  virtual std::optional<uint8_t> fallback_byte(int32_t id) const = 0;

  // Whether the id was added to the model's vocabulary, as special tokens are.
  virtual bool is_added(int32_t id) const = 0;

  // Whether decoding with skip_special_tokens leaves this id out.
  virtual bool is_special(int32_t id) const = 0;

  // From tokenizer_config.json; none where it names no such token. The ids that end a generation
  // are the model's matter (generation_config.json may list more).
  virtual std::optional<int32_t> bos_id() const = 0;
  virtual std::optional<int32_t> eos_id() const = 0;

  // Compiles grammars over a model's vocabulary of `vocab_size` ids, which may be wider than this
  // one; `eos_ids` end an output. Takes a while with large vocabularies. The tokenizer is not
  // needed afterwards.
  virtual Result<std::unique_ptr<GrammarCompiler>> grammar_compiler(
      int32_t vocab_size, std::span<const int32_t> eos_ids) const = 0;
};

// Loads tokenizer.json, or a vocabulary in another form (gguf/model_texts.h), and
// tokenizer_config.json where it exists, of a model.
Result<std::unique_ptr<Tokenizer>> load_hf_tokenizer(const ModelFiles& model);

}  // namespace foretoken
