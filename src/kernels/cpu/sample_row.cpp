#include "kernels/cpu/sample_row.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/hot.h"
#include "kernels/sample.h"
#include "kernels/sample_math.h"

namespace foretoken::cpu {
namespace {

namespace math = sample_math;

constexpr int kChunk = 512;  // logits in work at once; a multiple of 4 and of kLanes
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// A piece of the row with masked ids at -inf and the tail filled up with -inf.
struct Chunk {
  float logits[kChunk];
  int32_t begin;
};

void load_chunk(const SampleRow& row, int32_t begin, Chunk& chunk) {
  const int count = std::min(kChunk, row.vocab - begin);
  std::memcpy(chunk.logits, row.logits + begin, sizeof(float) * static_cast<size_t>(count));
  std::fill(chunk.logits + count, chunk.logits + kChunk, kMinusInf);
  chunk.begin = begin;
  if (!row.masks_stop_ids) return;
  for (int i = 0; i < row.params->num_stop_ids; ++i) {
    const int32_t at = row.params->stop_ids[i] - begin;
    if (at >= 0 && at < kChunk) chunk.logits[at] = kMinusInf;
  }
}

// Highest logit of the chunk; `invalid` collects whether any logit is NaN or +inf.
FT_HOT float chunk_max(const Chunk& chunk, uint32_t& invalid) {
  Lanes max, lanes;
  load(max, chunk.logits);
  LanesU32 bad = {};
  for (int i = 0; i < kChunk; i += kLanes) {
    load(lanes, chunk.logits + i);
    max = lanes > max ? lanes : max;
    bad |= reinterpret_cast<LanesU32>(!(lanes < std::numeric_limits<float>::infinity()));
  }
  float best = max[0];
  for (int i = 0; i < kLanes; ++i) {
    best = max[i] > best ? max[i] : best;
    invalid |= bad[i];
  }
  return best;
}

FT_HOT int first_equal(const Chunk& chunk, float value) {
  for (int i = 0; i < kChunk; ++i) {
    if (chunk.logits[i] == value) return i;
  }
  return -1;
}

FT_HOT void chunk_keys(const Chunk& chunk, uint32_t* keys) {
  for (int i = 0; i < kChunk; ++i) keys[i] = math::ordered_key(chunk.logits[i]);
}

FT_HOT void chunk_masses(const Chunk& chunk, float max, float temperature, uint32_t* masses) {
  for (int i = 0; i < kChunk; ++i) {
    masses[i] = math::mass_of(math::weight_of(chunk.logits[i], max, temperature));
  }
}

FT_HOT float chunk_weights(const Chunk& chunk, float max, float temperature, float floor,
                           float* weights) {
  float sum[kLanes] = {};
  for (int i = 0; i < kChunk; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      const float logit = chunk.logits[i + j];
      const float weight = math::weight_of(logit, max, temperature);
      weights[i + j] = logit >= floor ? weight : 0.0f;
      sum[j] += weights[i + j];
    }
  }
  float total = 0;
  for (int j = 0; j < kLanes; ++j) total += sum[j];
  return total;
}

FT_HOT void chunk_scores(const SampleRow& row, const Chunk& chunk, const float* weights,
                         float* scores) {
  const auto block = static_cast<uint32_t>(chunk.begin) / 4;
  uint32_t words[4][kChunk / 4];
  for (int b = 0; b < kChunk / 4; ++b) {
    const Philox4 noise =
        math::noise_words(block + static_cast<uint32_t>(b), row.position, row.params->choice,
                          kSampleTarget, row.params->seed);
    words[0][b] = noise.v[0];
    words[1][b] = noise.v[1];
    words[2][b] = noise.v[2];
    words[3][b] = noise.v[3];
  }
  for (int i = 0; i < kChunk; ++i) {
    const float weight = weights[i];
    const float score = math::race_score(words[i % 4][i / 4], weight > 0.0f ? weight : 1.0f);
    scores[i] = weight > 0.0f ? score : std::numeric_limits<float>::infinity();
  }
}

// What a threshold is searched for: the highest key with at least `wanted` units at or above it,
// among keys >= floor. A unit is an id (top_k) or an id's mass (top_p).
struct Search {
  bool by_mass;
  float max;
  float temperature;
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
    load_chunk(row, begin, chunk);
    chunk_keys(chunk, keys);
    if (search.by_mass) chunk_masses(chunk, search.max, search.temperature, masses);
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
    load_chunk(row, begin, chunk);
    chunk_keys(chunk, keys);
    chunk_masses(chunk, search.max, search.temperature, masses);
    for (int i = 0; i < kChunk; ++i) total += keys[i] >= search.floor ? masses[i] : 0;
  }
  return total;
}

// Inverse of the ordered key.
float float_of_key(uint32_t key) {
  return math::float_of(key & 0x80000000u ? key ^ 0x80000000u : ~key);
}

// The lowest logit that top_k and top_p keep.
float kept_floor(const SampleRow& row, float max) {
  const SlotParams& p = *row.params;
  Search search{false, max, p.temperature, 0, 0};
  if (p.top_k > 0 && p.top_k < row.vocab) {
    search.wanted = static_cast<uint64_t>(p.top_k);
    search.floor = find_threshold(row, search);
  }
  if (p.top_p < 1.0f) {
    search.by_mass = true;
    search.wanted = math::top_p_mass(p.top_p, total_mass(row, search));
    search.floor = std::max(search.floor, find_threshold(row, search));
  }
  return search.floor <= math::kKeyOfMinusInf ? kMinusInf : float_of_key(search.floor);
}

int32_t draw(const SampleRow& row, float max, float floor) {
  Chunk chunk;
  float weights[kChunk];
  float scores[kChunk];
  float best = std::numeric_limits<float>::infinity();
  int32_t best_id = -1;
  for (int32_t begin = 0; begin < row.vocab; begin += kChunk) {
    load_chunk(row, begin, chunk);
    if (chunk_weights(chunk, max, row.params->temperature, floor, weights) == 0.0f) continue;
    chunk_scores(row, chunk, weights, scores);
    for (int i = 0; i < kChunk; ++i) {
      if (scores[i] < best) {
        best = scores[i];
        best_id = begin + i;
      }
    }
  }
  return best_id;
}

}  // namespace

int32_t sample_row(const SampleRow& row) {
  Chunk chunk;
  float max = kMinusInf;
  int32_t argmax = -1;
  uint32_t invalid = 0;
  for (int32_t begin = 0; begin < row.vocab; begin += kChunk) {
    load_chunk(row, begin, chunk);
    const float top = chunk_max(chunk, invalid);
    if (top > max) {
      max = top;
      argmax = begin + first_equal(chunk, top);
    }
  }
  if (invalid != 0 || argmax < 0) return -1;
  if (row.params->temperature <= 0.0f) return argmax;
  return draw(row, max, kept_floor(row, max));
}

}  // namespace foretoken::cpu
