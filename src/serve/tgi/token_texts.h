#pragma once
#include <foretoken/request.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace foretoken {

// Whether a token is one that texts leave out, as an end of text.
using IsSpecialToken = std::function<bool(int32_t)>;

// A token and its part of the text.
struct TokenText {
  TokenLogprobs position;
  std::string text;
  bool special = false;
};

// Which part of an answer's text each of its tokens has. What the tokens that are not special have,
// one after the other, is the text: a character of several tokens stands at the last of these.
// Tokens wait for text that is held back, as where it may become a stop text, so that a stream has
// the same parts as a whole answer.
class TokenTexts {
 public:
  // `keeps_special`: the text has special tokens, too.
  TokenTexts(IsSpecialToken is_special, bool keeps_special)
      : is_special_(std::move(is_special)), keeps_special_(keeps_special) {}

  // Takes the news of a choice in; returns the tokens whose text is known by now, of a finished one
  // all. Text that no token is left for joins the last one, or is `trailing_text` without any.
  std::vector<TokenText> take(const RequestOutput& news);
  const std::string& trailing_text() const { return text_; }

 private:
  // Whether the first token waits no longer; it then has its text.
  bool settle(bool finished, TokenText* token);
  std::string cut(size_t num_bytes);

  const IsSpecialToken is_special_;
  const bool keeps_special_;
  std::deque<TokenLogprobs> waiting_;
  std::string text_;      // that no token has yet
  size_t num_taken_ = 0;  // bytes at its beginning of a character whose other parts follow
  bool at_beginning_ = true;
};

}  // namespace foretoken
