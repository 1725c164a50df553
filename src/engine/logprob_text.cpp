#include "engine/logprob_text.h"

#include <algorithm>

namespace foretoken {
namespace {

std::string text_of(int32_t id, const Tokenizer* tokenizer) {
  if (tokenizer == nullptr) return {};
  const Result<std::string> text = tokenizer->decode(std::span(&id, 1), false);
  return text.ok() ? text.value() : std::string();
}

}  // namespace

TokenLogprobs describe_row(const LogprobRow& row, int num_top, const Tokenizer* tokenizer) {
  TokenLogprobs described;
  described.token = {row.token.id, row.token.logprob, row.token.rank,
                     text_of(row.token.id, tokenizer)};
  const size_t count = std::min(row.top.size(), static_cast<size_t>(std::max(num_top, 0)));
  described.top.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const TopLogprob& top = row.top[i];
    described.top.push_back(
        {top.id, top.logprob, static_cast<int>(i) + 1, text_of(top.id, tokenizer)});
  }
  return described;
}

}  // namespace foretoken
