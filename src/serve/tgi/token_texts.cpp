#include "serve/tgi/token_texts.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace foretoken {
namespace {

// Text that stands before a token's own and that none of the tokens before it accounts for, as
// where bytes are no character: more of it is no such text.
constexpr size_t kMaxSkipped = 12;

const std::string& bytes_of(const Logprob& token) {
  return token.bytes.empty() ? token.decoded_token : token.bytes;
}

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// Of the first `size` bytes of `text` those that end with a whole character.
size_t whole_characters(std::string_view text, size_t size) {
  while (size > 0 && size < text.size() && continues_character(text[size])) --size;
  return size;
}

}  // namespace

std::string TokenTexts::cut(size_t num_bytes) {
  const size_t whole = whole_characters(text_, num_bytes);
  num_taken_ = num_bytes - whole;
  std::string begin = text_.substr(0, whole);
  text_.erase(0, whole);
  return begin;
}

bool TokenTexts::settle(bool finished, TokenText* token) {
  const Logprob& first = waiting_.front().token;
  std::string_view own = bytes_of(first);
  const std::string_view rest = std::string_view(text_).substr(num_taken_);
  // Decoders leave out the blank that a text begins with.
  if (at_beginning_ && own.starts_with(' ') && !rest.empty() && !rest.starts_with(' ')) {
    own.remove_prefix(1);
  }
  const bool next = !own.empty() && rest.starts_with(own);
  token->special = !next && !keeps_special_ && is_special_(first.token_id);
  if (token->special) token->text = first.decoded_token;
  if (token->special || own.empty()) return true;
  const bool incomplete = rest.size() < own.size() && own.starts_with(rest);
  if (incomplete && !finished) return false;
  const std::string_view near = rest.substr(0, kMaxSkipped + own.size());
  const size_t at = incomplete ? std::string_view::npos : near.find(own);
  if (at <= kMaxSkipped) {
    token->text = cut(num_taken_ + at + own.size());
    return true;
  }
  // Its text may come yet.
  return finished || rest.size() >= kMaxSkipped + own.size();
}

std::vector<TokenText> TokenTexts::take(const RequestOutput& news) {
  text_ += news.text;
  waiting_.insert(waiting_.end(), news.logprobs.begin(), news.logprobs.end());
  std::vector<TokenText> settled;
  while (!waiting_.empty()) {
    TokenText token;
    if (!settle(news.finished, &token)) break;
    at_beginning_ = at_beginning_ && token.text.empty();
    token.position = std::move(waiting_.front());
    waiting_.pop_front();
    settled.push_back(std::move(token));
  }
  if (!news.finished || text_.empty()) return settled;
  const auto last = std::find_if(settled.rbegin(), settled.rend(),
                                 [](const TokenText& token) { return !token.special; });
  if (last != settled.rend()) last->text += std::exchange(text_, {});
  return settled;
}

}  // namespace foretoken
