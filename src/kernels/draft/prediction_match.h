#pragma once
#include <cstdint>

#include "base/host_device.h"

// Where a sequence stands in the prediction of its output: the arithmetic of kernels/draft/ngram.h,
// shared by the CPU and the CUDA kernels.

namespace foretoken::prediction_match {

inline constexpr int32_t kMaxTokens = 32;     // of a common suffix
inline constexpr int32_t kLeastTokens = 2;    // the text is expected, so that few tell the place
inline constexpr int32_t kNearest = 1 << 30;  // more than twice any distance

// A sequence t[0, len) whose output, from prompt_len on, was predicted: u is its prompt followed by
// the prediction.
struct Predicted {
  const int32_t* ids;  // [num_ids]
  int32_t num_ids;
  int32_t prompt_len;
  int32_t len;
};

// Tokens of the common suffix of u[0, prompt_len + next) and t, up to kMaxTokens. `token_at(i)` is
// t[i].
template <class TokenAt>
FT_HD inline int32_t common_suffix(const Predicted& p, int32_t next, const TokenAt& token_at) {
  const int32_t end = p.prompt_len + next;
  const int32_t shorter = end < p.len ? end : p.len;
  const int32_t most = shorter < kMaxTokens ? shorter : kMaxTokens;
  int32_t length = 0;
  while (length < most) {
    const int32_t i = end - 1 - length;
    const int32_t id = i >= p.prompt_len ? p.ids[i - p.prompt_len] : token_at(i);
    if (id != token_at(p.len - 1 - length)) break;
    ++length;
  }
  return length;
}

// Which of two places with equal suffixes counts: the one whose distance from the output's own
// length is less, the later one of two that are as far.
FT_HD inline int32_t nearness(const Predicted& p, int32_t next) {
  const int32_t ahead = next - (p.len - p.prompt_len);
  return kNearest - 2 * (ahead < 0 ? -ahead : ahead) + (ahead > 0 ? 1 : 0);
}

// Ordered as places are preferred; 0: the suffix is shorter than `least`.
FT_HD inline uint64_t key_of(const Predicted& p, int32_t next, int32_t length, int32_t least) {
  if (length < least) return 0;
  return static_cast<uint64_t>(static_cast<uint32_t>(length)) << 32 |
         static_cast<uint32_t>(nearness(p, next));
}

FT_HD inline int32_t length_of(uint64_t key) { return static_cast<int32_t>(key >> 32); }

// The place that a key other than 0 was made of.
FT_HD inline int32_t next_of(const Predicted& p, uint64_t key) {
  const int32_t rest = kNearest + 1 - static_cast<int32_t>(key & 0xffffffffu);
  const int32_t distance = rest / 2;
  return p.len - p.prompt_len + (rest % 2 == 0 ? distance : -distance);
}

}  // namespace foretoken::prediction_match
