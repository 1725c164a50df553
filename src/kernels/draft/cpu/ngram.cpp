#include "kernels/draft/ngram.h"

#include <algorithm>

#include "kernels/cpu/op_table.h"
#include "kernels/draft/cpu/own_text.h"
#include "kernels/draft_lists.h"
#include "kernels/plan_layout.h"

namespace foretoken::cpu {
namespace {

void propose_ngram(const NgramArgs& a, int32_t slot) {
  SlotState& state = a.batch.slots[slot];
  const SlotParams& params = a.batch.params[slot];
  if (!has_turn(state, params, a.drafter)) return;
  state.num_draft_tokens = 0;
  state.from_prediction = 0;
  const int wanted = lookup_drafts(state, a.num_draft_tokens);
  if (wanted == 0) return;
  const auto predicted = predicted_of(a.batch, slot);
  const uint64_t key =
      find_predicted(a.batch, slot, predicted, std::min(a.min_n, prediction_match::kLeastTokens));
  const int32_t length = prediction_match::length_of(key);
  OwnMatch match;
  if (length < a.max_n) match = find_own(a.batch, slot, std::max(a.min_n, length + 1), a.max_n);
  if (match.position >= 0) {
    draft_own(a.batch, slot, match, wanted);
  } else if (key != 0) {
    draft_predicted(state, predicted, key, wanted);
  }
}

}  // namespace

void ngram(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const NgramArgs*>(args);
  const PlanView plan = plan_view(const_cast<void*>(a.plan), a.limits);
  pool.parallel_for(plan.header->num_spans,
                    [&](int64_t index, int) { propose_ngram(a, plan.spans[index].slot); });
}

}  // namespace foretoken::cpu
