#include "kernels/draft/cpu/own_text.h"

#include <algorithm>

#include "kernels/cpu/token_page.h"

namespace foretoken::cpu {
namespace {

// Common suffix of t[..j] and t[..last], counted up to max_n.
int32_t common_suffix(const BatchState& batch, int32_t slot, int32_t j, int32_t last,
                      int32_t max_n) {
  const int32_t limit = std::min(max_n, j + 1);
  int32_t length = 0;
  while (length < limit &&
         token_at(batch, slot, j - length) == token_at(batch, slot, last - length)) {
    ++length;
  }
  return length;
}

}  // namespace

prediction_match::Predicted predicted_of(const BatchState& batch, int32_t slot) {
  const SlotParams& params = batch.params[slot];
  return {batch.lists.prediction + int64_t{slot} * batch.lists.max_prediction,
          params.num_prediction, params.prompt_len, batch.slots[slot].len};
}

uint64_t find_predicted(const BatchState& batch, int32_t slot,
                        const prediction_match::Predicted& predicted, int32_t least) {
  const auto token = [&](int32_t i) { return token_at(batch, slot, i); };
  uint64_t best = 0;
  for (int32_t next = 0; next < predicted.num_ids; ++next) {
    const int32_t length = prediction_match::common_suffix(predicted, next, token);
    best = std::max(best, prediction_match::key_of(predicted, next, length, least));
  }
  return best;
}

// Most positions fail at their own token, so the scan goes page by page.
OwnMatch find_own(const BatchState& batch, int32_t slot, int32_t least, int32_t max_n) {
  const int32_t last = batch.slots[slot].len - 1;
  const int32_t last_id = token_at(batch, slot, last);
  OwnMatch best{-1, least - 1};
  for (int32_t end = last; end > 0;) {
    const int32_t begin = (end - 1) / batch.block_size * batch.block_size;
    const int32_t* page = &token_at(batch, slot, begin);
    for (int32_t j = end - 1; j >= begin; --j) {
      if (page[j - begin] != last_id) continue;
      const int32_t length = common_suffix(batch, slot, j, last, max_n);
      if (length <= best.length) continue;
      best = {j, length};
      if (length >= max_n) return best;
    }
    end = begin;
  }
  return best.position < 0 ? OwnMatch{} : best;
}

void draft_predicted(SlotState& state, const prediction_match::Predicted& predicted, uint64_t key,
                     int32_t count) {
  const int32_t next = prediction_match::next_of(predicted, key);
  state.num_draft_tokens = std::min(count, predicted.num_ids - next);
  std::copy_n(predicted.ids + next, state.num_draft_tokens, state.drafts);
  state.from_prediction = 1;
}

void draft_own(const BatchState& batch, int32_t slot, const OwnMatch& match, int32_t count) {
  SlotState& state = batch.slots[slot];
  for (int32_t i = 0; i < count; ++i) {
    const int32_t from = match.position + 1 + i;
    state.drafts[i] =
        from < state.len ? token_at(batch, slot, from) : state.drafts[from - state.len];
  }
  state.num_draft_tokens = count;
}

}  // namespace foretoken::cpu
