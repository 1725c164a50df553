#pragma once
#include <cstdint>

namespace foretoken::cpu {

inline constexpr int kLogitsChunk = 512;  // logits in work at once; a multiple of 32

// A piece of a row of logits, filled up with -inf behind the vocabulary.
struct LogitsChunk {
  float logits[kLogitsChunk];
  int32_t begin;
};

// The logits of ids begin .. begin + kLogitsChunk - 1; begin < vocab.
void load_chunk(const float* logits, int32_t vocab, int32_t begin, LogitsChunk& chunk);

// Highest logit of the chunk; `invalid` becomes nonzero where a logit is NaN or +inf.
float chunk_max(const LogitsChunk& chunk, uint32_t& invalid);

}  // namespace foretoken::cpu
