#include "kernels/sampling/cpu/logits_chunk.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"

namespace foretoken::cpu {

void load_chunk(const float* logits, int32_t vocab, int32_t begin, LogitsChunk& chunk) {
  const int count = std::min(kLogitsChunk, vocab - begin);
  std::memcpy(chunk.logits, logits + begin, sizeof(float) * static_cast<size_t>(count));
  std::fill(chunk.logits + count, chunk.logits + kLogitsChunk,
            -std::numeric_limits<float>::infinity());
  chunk.begin = begin;
}

FT_HOT float chunk_max(const LogitsChunk& chunk, uint32_t& invalid) {
  Octet max, lanes;
  load(max, chunk.logits);
  OctetU32 bad = {};
  for (int i = 0; i < kLogitsChunk; i += kOctet) {
    load(lanes, chunk.logits + i);
    max = lanes > max ? lanes : max;
    bad |= reinterpret_cast<OctetU32>(!(lanes < std::numeric_limits<float>::infinity()));
  }
  float best = max[0];
  for (int i = 0; i < kOctet; ++i) {
    best = max[i] > best ? max[i] : best;
    invalid |= bad[i];
  }
  return best;
}

}  // namespace foretoken::cpu
