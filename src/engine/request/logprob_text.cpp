#include "engine/request/logprob_text.h"

#include <algorithm>

namespace foretoken {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

// Of a token whose text is `text`; "" where that says it all.
std::string hidden_bytes(int32_t id, const std::string& text, const Tokenizer& tokenizer) {
  // The decoder holds back, or replaces, what is no whole character.
  if (!text.empty() && text.find(kReplacement) == std::string::npos) return {};
  if (const auto byte = tokenizer.fallback_byte(id)) return {static_cast<char>(*byte)};
  std::string bytes = tokenizer.token_bytes(id).value_or("");
  return bytes == text ? std::string() : bytes;
}

Logprob described(int32_t id, float logprob, int rank, const Tokenizer* tokenizer) {
  Logprob token{id, logprob, rank, {}};
  if (tokenizer == nullptr) return token;
  const Result<std::string> text = tokenizer->decode(std::span(&id, 1), false);
  if (text.ok()) token.decoded_token = text.value();
  token.bytes = hidden_bytes(id, token.decoded_token, *tokenizer);
  return token;
}

}  // namespace

TokenLogprobs describe_row(const LogprobRow& row, int num_top, const Tokenizer* tokenizer) {
  TokenLogprobs position;
  position.token = described(row.token.id, row.token.logprob, row.token.rank, tokenizer);
  const size_t count = std::min(row.top.size(), static_cast<size_t>(std::max(num_top, 0)));
  position.top.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const TopLogprob& top = row.top[i];
    position.top.push_back(described(top.id, top.logprob, static_cast<int>(i) + 1, tokenizer));
  }
  return position;
}

}  // namespace foretoken
