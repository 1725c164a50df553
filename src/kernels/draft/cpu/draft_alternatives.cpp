#include "kernels/draft/draft_alternatives.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"

namespace foretoken::cpu {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

// Keeps the likeliest ids in order; ids come in ascending order.
void insert(DraftAlternative (&ids)[kDraftAlternatives], float (&logits)[kDraftAlternatives],
            int32_t id, float logit) {
  if (!(logit > logits[kDraftAlternatives - 1])) return;
  int at = kDraftAlternatives - 1;
  for (; at > 0 && logit > logits[at - 1]; --at) {
    logits[at] = logits[at - 1];
    ids[at] = ids[at - 1];
  }
  logits[at] = logit;
  ids[at].id = id;
}

void alternatives_of(const DraftAlternativesArgs& a, const float* logits, int32_t drafted,
                     DraftAlternative* out) {
  DraftAlternative ids[kDraftAlternatives];
  float best[kDraftAlternatives];
  std::fill_n(ids, kDraftAlternatives, DraftAlternative{-1, 0});
  std::fill_n(best, kDraftAlternatives, kNone);
  if (drafted >= 0) {
    for (int32_t id = 0; id < a.vocab; ++id) {
      if (id != drafted && std::isfinite(logits[id])) insert(ids, best, id, logits[id]);
    }
  }
  const float max = drafted >= 0 ? std::max(logits[drafted], best[0]) : kNone;
  double sum = 0;
  for (int32_t id = 0; drafted >= 0 && id < a.vocab; ++id) {
    if (std::isfinite(logits[id])) sum += std::exp(logits[id] - max);
  }
  const auto chance = [&](float logit) {
    if (!(sum > 0) || !std::isfinite(logit)) return 0;
    return static_cast<int32_t>(std::exp(logit - max) / sum * kSureDraft);
  };
  out[0] = {drafted, drafted >= 0 ? chance(logits[drafted]) : 0};
  for (int i = 0; i < kDraftAlternatives; ++i) out[1 + i] = {ids[i].id, chance(best[i])};
}

}  // namespace

void draft_alternatives(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const DraftAlternativesArgs*>(args);
  const int rows = live_rows(*a.counts, RowKind::kLogits, a.row_offset, a.max_rows);
  for_each_row(pool, rows, 4 * int64_t{a.vocab}, [&](int64_t row) {
    const int64_t index = a.row_offset + row;
    alternatives_of(a, a.logits + row * a.vocab, a.sampled[index],
                    a.out + index * (kDraftAlternatives + 1));
  });
}

}  // namespace foretoken::cpu
