#include "kernels/sampling/logprobs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "kernels/cpu/hot.h"
#include "kernels/cpu/lane_math.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/plan_layout.h"
#include "kernels/sample_math.h"
#include "kernels/sampling/cpu/logits_chunk.h"
#include "kernels/sampling/cpu/sample_row.h"

namespace foretoken::cpu {
namespace {

namespace math = sample_math;

// Logits above `logit` in the chunk.
FT_HOT int32_t count_above(const LogitsChunk& chunk, float logit) {
  OctetI32 above = {};
  for (int i = 0; i < kLogitsChunk; i += kOctet) {
    Octet lanes;
    load(lanes, chunk.logits + i);
    above -= lanes > Octet{} + logit;
  }
  int32_t count = 0;
  for (int i = 0; i < kOctet; ++i) count += above[i];
  return count;
}

// Sum of the fine masses of the chunk's kept ids.
FT_HOT uint64_t chunk_mass(const LogitsChunk& chunk, const KeptIds& kept) {
  OctetU32 high = {}, low = {};
  for (int i = 0; i < kLogitsChunk; i += kOctet) {
    Octet lanes, weights;
    OctetU32 high_part, low_part;
    load(lanes, chunk.logits + i);
    exp_nonpositive(weights, (lanes - kept.max) / kept.temperature);
    weights = lanes >= Octet{} + kept.floor ? weights : Octet{};
    weights = weights >= Octet{} + kept.min_p ? weights : Octet{};
    fine_masses_of(high_part, low_part, weights);
    high += high_part;
    low += low_part;
  }
  uint64_t sum = 0;
  for (int i = 0; i < kOctet; ++i) sum += (uint64_t{high[i]} << 20) + low[i];
  return sum;
}

// The likeliest ids so far: a heap whose front is the least likely of them.
class TopIds {
 public:
  explicit TopIds(int wanted) : wanted_(wanted) {}

  // ids come in ascending order, so that a later one must be greater to push an earlier one out.
  void add(const LogitsChunk& chunk, float highest, int32_t vocab) {
    if (wanted_ == 0) return;
    if (count_ == wanted_ && math::ordered_key(highest) <= lowest_key()) return;
    const int count = std::min(kLogitsChunk, vocab - chunk.begin);
    for (int i = 0; i < count; ++i) {
      const uint32_t key = math::ordered_key(chunk.logits[i]);
      if (count_ == wanted_) {
        if (key <= lowest_key()) continue;
        std::pop_heap(keys_, keys_ + count_--, std::greater<>());
      }
      const auto id = static_cast<uint32_t>(chunk.begin + i);
      keys_[count_++] = uint64_t{key} << 32 | (~id & 0xffffffffu);
      std::push_heap(keys_, keys_ + count_, std::greater<>());
    }
  }

  // Ends the heap: ids from the likeliest on.
  void sort() { std::sort_heap(keys_, keys_ + count_, std::greater<>()); }
  int count() const { return count_; }
  int32_t id(int i) const { return static_cast<int32_t>(~static_cast<uint32_t>(keys_[i])); }

 private:
  uint32_t lowest_key() const { return static_cast<uint32_t>(keys_[0] >> 32); }

  const int wanted_;
  int count_ = 0;
  uint64_t keys_[kMaxLogprobs];  // ordered key of the logit, ~id
};

// log(sum of the weights) of what is kept.
double log_of_weights(const float* logits, int32_t vocab, const KeptIds& kept) {
  LogitsChunk chunk;
  uint64_t mass = 0;
  for (int32_t begin = 0; begin < vocab; begin += kLogitsChunk) {
    load_chunk(logits, vocab, begin, chunk);
    mass += chunk_mass(chunk, kept);
  }
  return math::log_of_fine_mass(mass);
}

// Passes over the row: highest logit, rank and top ids; then what is kept, and its sum. `top` has
// room for `wanted`.
void describe_row(const float* logits, const SlotParams& params, int32_t vocab, int wanted,
                  RowLogprobs& row, TopLogprob* top) {
  LogitsChunk chunk;
  TopIds ids(wanted);
  float max = -std::numeric_limits<float>::infinity();
  uint32_t invalid = 0;
  int32_t above = 0;
  for (int32_t begin = 0; begin < vocab; begin += kLogitsChunk) {
    load_chunk(logits, vocab, begin, chunk);
    const float highest = chunk_max(chunk, invalid);
    max = std::max(max, highest);
    above += count_above(chunk, logits[row.id]);
    ids.add(chunk, highest, vocab);
  }
  if (invalid != 0 || max == -std::numeric_limits<float>::infinity()) return;
  const KeptIds all{max, 1.0f, 0.0f, -std::numeric_limits<float>::infinity()};
  const KeptIds kept =
      wants_processed(params) ? kept_ids({logits, &params, vocab, 0, false}, max) : all;
  const double log_sum = log_of_weights(logits, vocab, kept);
  const math::DrawnIds drawn{kept.max, kept.temperature, kept.min_p, math::ordered_key(kept.floor)};
  const auto logprob = [&](int32_t id) {
    return wants_processed(params) ? math::drawn_logprob_of(logits[id], drawn, log_sum)
                                   : math::logprob_of(logits[id], max, log_sum);
  };
  row.logprob = logprob(row.id);
  row.rank = 1 + above;
  row.num_top = wanted;
  ids.sort();
  for (int i = 0; i < wanted; ++i) top[i] = {ids.id(i), logprob(ids.id(i))};
}

void write_row(const LogprobsArgs& a, int32_t i) {
  const int32_t index = a.row_offset + i;
  const ResultView out = result_view(a.result, a.limits);
  const SlotParams& params = a.params[a.tensors.row_slot[a.tensors.logits_rows[index]]];
  RowLogprobs row{a.tensors.sampled[index], 0.0f, 0, kNoLogprobs};
  if (params.num_logprobs != kNoLogprobs && row.id >= 0 && row.id < a.vocab) {
    const int wanted = std::min({num_alternatives(params), a.vocab, a.limits.max_top});
    const bool raw = a.raw != nullptr && shapes_logits(params) && !wants_processed(params);
    describe_row((raw ? a.raw : a.logits) + int64_t{i} * a.vocab, params, a.vocab, wanted, row,
                 out.top + int64_t{index} * a.limits.max_top);
  }
  out.rows[index] = row;
}

}  // namespace

void logprobs(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const LogprobsArgs*>(args);
  const int rows =
      std::min(live_rows(*a.tensors.counts, RowKind::kLogits, a.row_offset, a.max_rows),
               a.limits.max_rows - a.row_offset);
  pool.parallel_for(rows, [&](int64_t i, int) { write_row(a, static_cast<int32_t>(i)); });
}

}  // namespace foretoken::cpu
