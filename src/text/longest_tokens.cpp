#include "text/longest_tokens.h"

#include <algorithm>
#include <bitset>

namespace foretoken {
namespace {

unsigned char byte_at(std::string_view bytes, size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

}  // namespace

void LongestTokens::sort() { std::ranges::sort(tokens_, {}, &Token::bytes); }

bool LongestTokens::has_all_bytes() const {
  std::bitset<256> found;
  for (const Token& token : tokens_) {
    if (token.bytes.size() == 1) found.set(byte_at(token.bytes, 0));
  }
  return found.all();
}

size_t LongestTokens::longest(std::string_view text, int32_t* id) const {
  auto begin = tokens_.begin(), end = tokens_.end();
  size_t size = 0;
  for (size_t at = 0; at < text.size() && begin != end; ++at) {
    // Those left have the text's first `at` bytes, the one that is no longer in front.
    const unsigned char next = byte_at(text, at);
    begin = std::partition_point(begin, end, [&](const Token& token) {
      return token.bytes.size() <= at || byte_at(token.bytes, at) < next;
    });
    end = std::partition_point(
        begin, end, [&](const Token& token) { return byte_at(token.bytes, at) == next; });
    if (begin == end || begin->bytes.size() != at + 1) continue;
    size = at + 1;
    *id = begin->id;
  }
  return size;
}

void LongestTokens::append(std::string_view text, std::vector<int32_t>* ids) const {
  while (!text.empty()) {
    int32_t id = 0;
    const size_t size = longest(text, &id);
    if (size > 0) ids->push_back(id);
    text.remove_prefix(std::max<size_t>(size, 1));
  }
}

size_t LongestTokens::find(std::string_view text, size_t* size, int32_t* id) const {
  for (size_t at = 0; !tokens_.empty() && at < text.size(); ++at) {
    *size = longest(text.substr(at), id);
    if (*size > 0) return at;
  }
  return std::string_view::npos;
}

}  // namespace foretoken
