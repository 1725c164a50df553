#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/utf8_stream.h"

namespace foretoken {

class TokenTable;
class Tokenizer;

// Turns a stream of token ids into pieces of text, one owner at a time.
//
// No piece ends inside a character: an incomplete one waits for its next token. All pieces together
// equal the tokenizer's decode of all ids, with one exception. Tokenizers with byte fallback
// replace a whole run of byte tokens by one U+FFFD for each byte when one byte in it is wrong;
// here, the characters of the run before the wrong byte are shown already and stay, and the
// replacement begins behind them. The work per token does not grow with the length of the text.
class Detokenizer {
 public:
  struct Options {
    bool skip_special_tokens = true;
    // False leaves out the space that some tokenizers put between two added tokens in a row (where
    // these are shown at all).
    bool spaces_between_special_tokens = true;
  };

  // `prompt` is what the text continues (its last few ids are enough): the first piece then keeps
  // the leading space that decoding drops at the start of a text. The tokenizer must outlive this.
  Detokenizer(const Tokenizer& tokenizer, Options options, std::span<const int32_t> prompt = {});

  // The text that becomes certain with this token; often empty. Fails on a negative id.
  Result<std::string> append(int32_t id);

  // What was held back, with U+FFFD for incomplete characters.
  Result<std::string> flush();

 private:
  bool leaves_no_text(int32_t id) const;
  Result<std::string> decode_after(std::span<const int32_t> context,
                                   std::span<const int32_t> ids) const;
  std::string append_bytes(int32_t id);
  Result<std::string> append_bare(int32_t id);
  Result<std::string> append_byte(int32_t id, char byte);
  std::string end_byte_run();
  Status drop_settled(const std::string& text);
  void settle(bool has_text);

  const Tokenizer* tokenizer_;
  Options options_;
  const TokenTable* table_;  // where decoding only joins bytes, or null: then the rest is used
  Utf8Stream utf8_;
  std::string run_bytes_;         // of a run of byte tokens, what is not a character yet
  bool run_is_wrong_ = false;     // a byte of the run was wrong
  bool last_added_ = false;       // the last id was an added token
  std::vector<int32_t> context_;  // tokens before pending_, all of their text emitted
  std::vector<int32_t> pending_;  // tokens whose text is not wholly certain
  size_t emitted_ = 0;            // bytes of the text of pending_ given away already
};

}  // namespace foretoken
