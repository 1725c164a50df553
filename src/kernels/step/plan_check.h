#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "kernels/step_types.h"

namespace foretoken {

// Whether the parts of a plan stay inside the plan and the slots' memory, so that a corrupt ring
// entry can become the queue's error instead of a wild access.

FT_HD inline bool is_within(int64_t value, int64_t limit) { return value >= 0 && value <= limit; }

FT_HD inline bool is_valid_header(const PlanHeader& header, const PlanLimits& limits) {
  return is_within(header.num_spans, limits.max_spans) &&
         is_within(header.num_inits, limits.max_spans) &&
         is_within(header.num_block_updates, limits.max_block_updates) &&
         is_within(header.num_tokens, limits.max_tokens) &&
         is_within(header.num_words, limits.max_words) &&
         is_within(header.lane_spans, header.num_spans);
}

// Words of the lists that `params` announce.
FT_HD inline int64_t list_words(const SlotParams& params, const SlotLists& lists) {
  return 2 * int64_t{params.num_logit_bias} + params.num_bad_word_ints +
         (params.has_allowed_ids != 0 ? lists.mask_words : 0) + params.num_prediction +
         params.num_flex_words;
}

FT_HD inline bool is_valid_init(const SlotInit& init, const PlanHeader& header,
                                const BatchState& batch) {
  const SlotParams& params = init.params;
  const SlotLists& lists = batch.lists;
  if (!is_within(init.slot, batch.num_slots - 1) || !is_within(params.num_stop_ids, kMaxStopIds) ||
      !is_within(params.drafter, kMaxDrafters - 1) ||
      !is_within(init.draft_computed, init.computed) ||
      !is_within(params.lookups, (1 << kMaxDrafters) - 1) ||
      !is_within(params.num_logit_bias, lists.logit_bias != nullptr ? kMaxLogitBias : 0) ||
      !is_within(params.num_bad_word_ints, lists.bad_words != nullptr ? kMaxBadWordInts : 0) ||
      (params.has_allowed_ids != 0 && lists.allowed_ids == nullptr) ||
      !is_within(params.num_prediction, lists.prediction != nullptr ? lists.max_prediction : 0) ||
      !is_within(params.num_flex_words, lists.flex != nullptr ? lists.max_flex_words : 0)) {
    return false;
  }
  const int64_t words = list_words(params, lists);
  return words == 0 || is_within(init.word_offset, header.num_words - words);
}

FT_HD inline bool is_valid_block_update(const BlockUpdate& update, const BatchState& batch) {
  return is_within(update.slot, batch.num_slots - 1) &&
         is_within(update.index, batch.max_blocks - 1) && update.block >= 0 &&
         (update.windowed == 0 || batch.window_tables != nullptr);
}

FT_HD inline bool is_valid_span(const SpanPlan& span, const PlanHeader& header,
                                const BatchState& batch) {
  if (!is_within(span.slot, batch.num_slots - 1) || span.num_new_ids < 0) return false;
  if (!is_within(span.num_draft_tokens, kMaxDraftTokens) || span.draft_rows < 0) return false;
  if (!is_within(span.num_lookup_tokens, kMaxDraftTokens)) return false;
  return span.num_new_ids == 0 ||
         (is_within(span.token_offset, int64_t{header.num_tokens} - span.num_new_ids) &&
          is_within(span.write_position,
                    int64_t{batch.max_blocks} * batch.block_size - span.num_new_ids));
}

}  // namespace foretoken
