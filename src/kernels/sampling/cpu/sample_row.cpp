#include "kernels/sampling/cpu/sample_row.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"
#include "kernels/sample_math.h"
#include "kernels/sampling/cpu/logits_chunk.h"
#include "kernels/sampling/sample.h"

namespace foretoken::cpu {
namespace {

namespace math = sample_math;

constexpr int kChunk = kLogitsChunk;
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

using Chunk = LogitsChunk;

// A piece of the row with masked ids at -inf.
void load_row_chunk(const SampleRow& row, int32_t begin, Chunk& chunk) {
  load_chunk(row.logits, row.vocab, begin, chunk);
  if (!row.masks_stop_ids) return;
  for (int i = 0; i < row.params->num_stop_ids; ++i) {
    const int32_t at = row.params->stop_ids[i] - begin;
    if (at >= 0 && at < kChunk) chunk.logits[at] = kMinusInf;
  }
}

int first_equal(const float* values, float value) {
  return static_cast<int>(std::find(values, values + kChunk, value) - values);
}

// weights = exp((logit - max) / temperature) of the kept ids, else 0. Returns whether any is above
// 0.
FT_HOT bool chunk_weights(const Chunk& chunk, const KeptIds& kept, float* weights) {
  Octet any = {};
  for (int i = 0; i < kChunk; i += kOctet) {
    Octet logits, w;
    load(logits, chunk.logits + i);
    exp_nonpositive(w, (logits - kept.max) / kept.temperature);
    w = logits >= Octet{} + kept.floor ? w : Octet{};
    w = w >= Octet{} + kept.min_p ? w : Octet{};
    any = w > any ? w : any;
    store(weights + i, w);
  }
  float highest = 0.0f;
  for (int i = 0; i < kOctet; ++i) highest = any[i] > highest ? any[i] : highest;
  return highest > 0.0f;
}

// Masses of the ids whose weight is at least min_p, else 0; the floor is left to the caller.
FT_HOT void chunk_masses(const Chunk& chunk, const KeptIds& kept, uint32_t* masses) {
  for (int i = 0; i < kChunk; i += kOctet) {
    Octet logits, weights;
    OctetU32 lanes;
    load(logits, chunk.logits + i);
    exp_nonpositive(weights, (logits - kept.max) / kept.temperature);
    weights = weights >= Octet{} + kept.min_p ? weights : Octet{};
    masses_of(lanes, weights);
    std::memcpy(masses + i, &lanes, sizeof lanes);
  }
}

// Keys of the chunk; returns whether any is >= floor and has `prefix` above bit `above` (< 32), or
// any value there when `above` is 32.
FT_HOT bool chunk_keys(const Chunk& chunk, uint32_t floor, int above, uint32_t prefix,
                       uint32_t* keys) {
  const uint32_t mask = above < 32 ? ~0u << above : 0u;
  const uint32_t wanted = above < 32 ? prefix << above : 0u;
  OctetU32 any = {};
  for (int i = 0; i < kChunk; i += kOctet) {
    Octet logits;
    OctetU32 lanes;
    load(logits, chunk.logits + i);
    ordered_keys(lanes, logits);
    any |= reinterpret_cast<OctetU32>(lanes >= floor) &
           reinterpret_cast<OctetU32>((lanes & mask) == wanted);
    std::memcpy(keys + i, &lanes, sizeof lanes);
  }
  uint32_t found = 0;
  for (int i = 0; i < kOctet; ++i) found |= any[i];
  return found != 0;
}

// The random word of each id of the chunk: Philox for kChunk / 4 counters side by side.
FT_HOT void chunk_noise(const SampleRow& row, int32_t begin, uint32_t* words) {
  constexpr int kBlocks = kChunk / 4;
  uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
  for (int b = 0; b < kBlocks; ++b) {
    c0[b] = static_cast<uint32_t>(begin) / 4 + static_cast<uint32_t>(b);
    c1[b] = static_cast<uint32_t>(row.position);
    c2[b] = static_cast<uint32_t>(row.params->choice);
    c3[b] = kSampleTarget;
  }
  auto k0 = static_cast<uint32_t>(row.params->seed);
  auto k1 = static_cast<uint32_t>(row.params->seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int b = 0; b < kBlocks; ++b) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0[b];
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2[b];
      c0[b] = static_cast<uint32_t>(p1 >> 32) ^ c1[b] ^ k0;
      c2[b] = static_cast<uint32_t>(p0 >> 32) ^ c3[b] ^ k1;
      c1[b] = static_cast<uint32_t>(p1);
      c3[b] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int b = 0; b < kBlocks; ++b) {
    words[4 * b] = c0[b];
    words[4 * b + 1] = c1[b];
    words[4 * b + 2] = c2[b];
    words[4 * b + 3] = c3[b];
  }
}

// Replaces the words by the scores of the draw, +inf where the weight is 0; returns the lowest.
FT_HOT float chunk_scores(const float* weights, const uint32_t* words, float* scores) {
  const Octet never = Octet{} + std::numeric_limits<float>::infinity();
  Octet lowest = never;
  for (int i = 0; i < kChunk; i += kOctet) {
    Octet w, score;
    OctetU32 word;
    load(w, weights + i);
    std::memcpy(&word, words + i, sizeof word);
    exponential_from_words(score, word);
    score = w > Octet{} ? score / w : never;
    lowest = score < lowest ? score : lowest;
    store(scores + i, score);
  }
  float best = lowest[0];
  for (int i = 1; i < kOctet; ++i) best = lowest[i] < best ? lowest[i] : best;
  return best;
}

// What a threshold is searched for: the highest key with at least `wanted` units at or above it,
// among keys >= floor. A unit is an id (top_k) or an id's mass (top_p).
struct Search {
  bool by_mass;
  KeptIds kept;  // its floor is not looked at
  uint32_t floor;
  uint64_t wanted;
};

constexpr int kDigits = 3;
constexpr int kShift[kDigits] = {21, 10, 0};
constexpr int kBins = 2048;

// Units of each value of one digit, over the keys that share `prefix` above the digit.
void histogram(const SampleRow& row, const Search& search, int digit, uint32_t prefix,
               uint64_t* bins) {
  const int shift = kShift[digit];
  const uint32_t width = digit == kDigits - 1 ? 1024u : 2048u;
  const int above = digit == 0 ? 32 : kShift[digit - 1];
  Chunk chunk;
  uint32_t keys[kChunk];
  uint32_t masses[kChunk];
  std::fill(bins, bins + kBins, 0);
  for (int32_t begin = 0; begin < row.vocab; begin += kChunk) {
    load_row_chunk(row, begin, chunk);
    if (!chunk_keys(chunk, search.floor, above, prefix, keys)) continue;
    if (search.by_mass) chunk_masses(chunk, search.kept, masses);
    const int count = std::min(kChunk, row.vocab - begin);
    for (int i = 0; i < count; ++i) {
      if (keys[i] < search.floor || (above < 32 && keys[i] >> above != prefix)) continue;
      bins[keys[i] >> shift & (width - 1)] += search.by_mass ? masses[i] : 1;
    }
  }
}

// Digit by digit from the highest: each pass finds the digit's value by running down the bins.
uint32_t find_threshold(const SampleRow& row, const Search& search) {
  uint64_t bins[kBins];
  uint64_t above = 0;
  uint32_t prefix = 0;
  for (int digit = 0; digit < kDigits; ++digit) {
    histogram(row, search, digit, prefix, bins);
    const int width_bits = digit == kDigits - 1 ? 10 : 11;
    int bin = (1 << width_bits) - 1;
    while (bin > 0 && above + bins[bin] < search.wanted) above += bins[bin--];
    prefix = prefix << width_bits | static_cast<uint32_t>(bin);
  }
  return prefix;
}

uint64_t total_mass(const SampleRow& row, const Search& search) {
  Chunk chunk;
  uint32_t masses[kChunk];
  uint32_t keys[kChunk];
  uint64_t total = 0;
  for (int32_t begin = 0; begin < row.vocab; begin += kChunk) {
    load_row_chunk(row, begin, chunk);
    if (!chunk_keys(chunk, search.floor, 32, 0, keys)) continue;
    chunk_masses(chunk, search.kept, masses);
    for (int i = 0; i < kChunk; ++i) total += keys[i] >= search.floor ? masses[i] : 0;
  }
  return total;
}

// The lowest logit that top_k and top_p keep.
float kept_floor(const SampleRow& row, const KeptIds& kept) {
  const SlotParams& p = *row.params;
  Search search{false, kept, 0, 0};
  if (p.top_k > 0 && p.top_k < row.vocab) {
    search.wanted = static_cast<uint64_t>(p.top_k);
    search.floor = find_threshold(row, search);
  }
  if (p.top_p < 1.0f) {
    search.by_mass = true;
    search.wanted = math::top_p_mass(p.top_p, total_mass(row, search));
    search.floor = std::max(search.floor, find_threshold(row, search));
  }
  return search.floor <= math::kKeyOfMinusInf ? kMinusInf : math::float_of_key(search.floor);
}

int32_t draw(const SampleRow& row, const KeptIds& kept) {
  Chunk chunk;
  float weights[kChunk];
  uint32_t words[kChunk];
  float scores[kChunk];
  float best = std::numeric_limits<float>::infinity();
  int32_t best_id = -1;
  for (int32_t begin = 0; begin < row.vocab; begin += kChunk) {
    load_row_chunk(row, begin, chunk);
    if (!chunk_weights(chunk, kept, weights)) continue;
    chunk_noise(row, begin, words);
    const float lowest = chunk_scores(weights, words, scores);
    if (lowest < best) {
      best = lowest;
      best_id = begin + first_equal(scores, lowest);
    }
  }
  return best_id;
}

}  // namespace

KeptIds kept_ids(const SampleRow& row, float max) {
  if (row.params->temperature <= 0.0f) return {max, 1.0f, 0.0f, max};
  KeptIds kept{max, row.params->temperature, row.params->min_p, kMinusInf};
  kept.floor = kept_floor(row, kept);
  return kept;
}

int32_t sample_row(const SampleRow& row) {
  Chunk chunk;
  float max = kMinusInf;
  int32_t argmax = -1;
  uint32_t invalid = 0;
  for (int32_t begin = 0; begin < row.vocab; begin += kChunk) {
    load_row_chunk(row, begin, chunk);
    const float top = chunk_max(chunk, invalid);
    if (top > max) {
      max = top;
      argmax = begin + first_equal(chunk.logits, top);
    }
  }
  if (invalid != 0 || argmax < 0) return -1;
  if (row.params->temperature <= 0.0f) return argmax;
  return draw(row, kept_ids(row, max));
}

}  // namespace foretoken::cpu
