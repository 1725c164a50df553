#include "kernels/draft/ngram.h"

#include <algorithm>

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/token_page.h"
#include "kernels/draft/prediction_match.h"
#include "kernels/plan_layout.h"

namespace foretoken::cpu {
namespace {

// Common suffix of t[..j] and t[..last], counted up to max_n.
int common_suffix(const BatchState& batch, int32_t slot, int32_t j, int32_t last, int32_t max_n) {
  const int limit = std::min(max_n, j + 1);
  int length = 0;
  while (length < limit &&
         token_at(batch, slot, j - length) == token_at(batch, slot, last - length)) {
    ++length;
  }
  return length;
}

prediction_match::Predicted predicted_of(const BatchState& batch, int32_t slot) {
  const SlotParams& params = batch.params[slot];
  return {batch.lists.prediction + int64_t{slot} * batch.lists.max_prediction,
          params.num_prediction, params.prompt_len, batch.slots[slot].len};
}

// The key of the best place in the slot's prediction, or 0.
uint64_t find_predicted(const NgramArgs& a, int32_t slot, const prediction_match::Predicted& p) {
  const auto token = [&](int32_t i) { return token_at(a.batch, slot, i); };
  const int32_t least = std::min(a.min_n, prediction_match::kLeastTokens);
  uint64_t best = 0;
  for (int32_t next = 0; next < p.num_ids; ++next) {
    const int32_t length = prediction_match::common_suffix(p, next, token);
    best = std::max(best, prediction_match::key_of(p, next, length, least));
  }
  return best;
}

// The position of the longest match of more than `below` tokens, the latest among equals, or -1.
// Most positions fail at their own token, so the scan goes page by page.
int32_t find_match(const NgramArgs& a, int32_t slot, int32_t len, int32_t below) {
  const BatchState& batch = a.batch;
  const int32_t last = len - 1;
  const int32_t last_id = token_at(batch, slot, last);
  int32_t best = -1;
  int best_length = std::max(a.min_n - 1, below);
  for (int32_t end = last; end > 0;) {
    const int32_t begin = (end - 1) / batch.block_size * batch.block_size;
    const int32_t* page = &token_at(batch, slot, begin);
    for (int32_t j = end - 1; j >= begin; --j) {
      if (page[j - begin] != last_id) continue;
      const int length = common_suffix(batch, slot, j, last, a.max_n);
      if (length <= best_length) continue;
      best = j;
      best_length = length;
      if (length >= a.max_n) return best;
    }
    end = begin;
  }
  return best;
}

void propose(const NgramArgs& a, int32_t slot) {
  SlotState& state = a.batch.slots[slot];
  if (a.batch.params[slot].drafter != a.drafter) return;
  const int32_t len = state.len;
  state.num_draft_tokens = 0;
  state.from_prediction = 0;
  const int wanted = std::min(a.num_draft_tokens, state.draft.num_draft_tokens);
  if (state.finished != static_cast<int32_t>(DeviceFinish::kNone) || state.computed != len - 1 ||
      wanted <= 0) {
    return;
  }
  const auto predicted = predicted_of(a.batch, slot);
  const uint64_t key = find_predicted(a, slot, predicted);
  const int32_t length = prediction_match::length_of(key);
  const int32_t match = length < a.max_n ? find_match(a, slot, len, length) : -1;
  if (match < 0 && key != 0) {
    const int32_t next = prediction_match::next_of(predicted, key);
    state.num_draft_tokens = std::min(wanted, predicted.num_ids - next);
    std::copy_n(predicted.ids + next, state.num_draft_tokens, state.drafts);
    state.from_prediction = 1;
    return;
  }
  if (match < 0) return;
  for (int i = 0; i < wanted; ++i) {
    const int32_t from = match + 1 + i;
    state.drafts[i] = from < len ? token_at(a.batch, slot, from) : state.drafts[from - len];
  }
  state.num_draft_tokens = wanted;
}

}  // namespace

void ngram(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const NgramArgs*>(args);
  const PlanView plan = plan_view(const_cast<void*>(a.plan), a.limits);
  pool.parallel_for(plan.header->num_spans,
                    [&](int64_t index, int) { propose(a, plan.spans[index].slot); });
}

}  // namespace foretoken::cpu
