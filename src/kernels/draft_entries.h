#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "kernels/step_types.h"

namespace foretoken {

// Exact entries of a drafter's KV, as the page headers of a slot's blocks keep them.

// The KV slot of a position; it must lie within max_blocks.
FT_HD inline int32_t kv_slot_at(const BatchState& batch, int32_t slot, int32_t position) {
  const int32_t block =
      batch.block_tables[int64_t{slot} * batch.max_blocks + position / batch.block_size];
  return block * batch.block_size + position % batch.block_size;
}

// The entries before the result are exact, given that those before `from` are; at most `end`.
FT_HD inline int32_t exact_entries(const BatchState& batch, int32_t slot, int32_t drafter,
                                   int32_t from, int32_t end) {
  int32_t at = from;
  while (at < end) {
    const int32_t begin = at / batch.block_size * batch.block_size;
    const int32_t block = kv_slot_at(batch, slot, begin) / batch.block_size;
    const int32_t exact = begin + batch.page_headers[block].draft_counts[drafter];
    if (exact > at) at = exact;
    if (exact < begin + batch.block_size) break;
  }
  return at < end ? at : end;
}

// Entries [from, to) have become exact behind exact ones: the blocks that hold them know it.
FT_HD inline void raise_draft_counts(const BatchState& batch, int32_t slot, int32_t drafter,
                                     int32_t from, int32_t to) {
  if (from >= to) return;
  for (int32_t begin = from / batch.block_size * batch.block_size; begin < to;
       begin += batch.block_size) {
    const int32_t block = kv_slot_at(batch, slot, begin) / batch.block_size;
    const int32_t count = to - begin < batch.block_size ? to - begin : batch.block_size;
    int16_t& known = batch.page_headers[block].draft_counts[drafter];
    if (count > known) known = static_cast<int16_t>(count);
  }
}

// Positions of the span's slot whose ids are known after the commit, as a drafter may use them:
// all when the span sampled, otherwise those that the target has computed.
FT_HD inline bool has_sampled(const SpanState& span) { return span.num_logits > span.num_scored; }
FT_HD inline int32_t known_after(const SpanState& span, const SlotState& state) {
  return has_sampled(span) ? state.len : state.computed;
}

// Sampling rows of the span that may be committed: all, except where a grammar's masks are late.
FT_HD inline int32_t num_decided(const SpanState& span, const SlotParams& params,
                                 const SlotState& state) {
  const int32_t rows = span.num_draft_tokens + 1;
  return params.grammar != 0 && state.num_decided < rows ? state.num_decided : rows;
}
// Its drafts that these rows decide over.
FT_HD inline int32_t num_verified(const SpanState& span, const SlotParams& params,
                                  const SlotState& state) {
  const int32_t rows = num_decided(span, params, state);
  return rows < span.num_draft_tokens ? rows : span.num_draft_tokens;
}

}  // namespace foretoken
