#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/host_device.h"
#include "kernels/step_types.h"

namespace foretoken {

// Layout of a plan or a result in one allocation: every part is 16-byte aligned.
FT_HD constexpr int64_t align16(int64_t bytes) { return (bytes + 15) / 16 * 16; }

FT_HD inline int64_t plan_bytes(const PlanLimits& limits) {
  return align16(sizeof(PlanHeader)) + align16(limits.max_spans * int64_t{sizeof(SpanPlan)}) +
         align16(limits.max_spans * int64_t{sizeof(SlotInit)}) +
         align16(limits.max_block_updates * int64_t{sizeof(BlockUpdate)}) +
         align16(limits.max_tokens * int64_t{sizeof(int32_t)}) +
         align16(limits.max_words * int64_t{sizeof(uint32_t)});
}

FT_HD inline PlanView plan_view(void* base, const PlanLimits& limits) {
  char* at = static_cast<char*>(base);
  PlanView view;
  view.header = reinterpret_cast<PlanHeader*>(at);
  at += align16(sizeof(PlanHeader));
  view.spans = reinterpret_cast<SpanPlan*>(at);
  at += align16(limits.max_spans * int64_t{sizeof(SpanPlan)});
  view.inits = reinterpret_cast<SlotInit*>(at);
  at += align16(limits.max_spans * int64_t{sizeof(SlotInit)});
  view.block_updates = reinterpret_cast<BlockUpdate*>(at);
  at += align16(limits.max_block_updates * int64_t{sizeof(BlockUpdate)});
  view.tokens = reinterpret_cast<int32_t*>(at);
  at += align16(limits.max_tokens * int64_t{sizeof(int32_t)});
  view.words = reinterpret_cast<uint32_t*>(at);
  return view;
}

FT_HD inline int64_t result_bytes(const ResultLimits& limits) {
  return align16(sizeof(ResultHeader)) + align16(limits.max_spans * int64_t{sizeof(SpanResult)}) +
         align16(limits.max_rows * int64_t{sizeof(RowLogprobs)}) +
         align16(int64_t{limits.max_rows} * limits.max_top * int64_t{sizeof(TopLogprob)}) +
         align16(int64_t{limits.max_spans} * limits.hidden * int64_t{sizeof(float)}) +
         align16(limits.max_states > 0 ? limits.max_spans * int64_t{sizeof(RowsOfStates)} : 0) +
         align16(int64_t{limits.max_states} * limits.hidden * int64_t{sizeof(float)});
}

FT_HD inline ResultView result_view(void* base, const ResultLimits& limits) {
  char* at = static_cast<char*>(base);
  ResultView view;
  view.header = reinterpret_cast<ResultHeader*>(at);
  at += align16(sizeof(ResultHeader));
  view.spans = reinterpret_cast<SpanResult*>(at);
  at += align16(limits.max_spans * int64_t{sizeof(SpanResult)});
  view.rows = reinterpret_cast<RowLogprobs*>(at);
  at += align16(limits.max_rows * int64_t{sizeof(RowLogprobs)});
  view.top = reinterpret_cast<TopLogprob*>(at);
  at += align16(int64_t{limits.max_rows} * limits.max_top * int64_t{sizeof(TopLogprob)});
  view.pooled = reinterpret_cast<float*>(at);
  at += align16(int64_t{limits.max_spans} * limits.hidden * int64_t{sizeof(float)});
  view.state_rows = reinterpret_cast<RowsOfStates*>(at);
  at += align16(limits.max_states > 0 ? limits.max_spans * int64_t{sizeof(RowsOfStates)} : 0);
  view.states = reinterpret_cast<float*>(at);
  return view;
}

// What the host finds of a pooling span that has ended: the states of its tokens, or one.
inline std::span<const float> pooled_states(const ResultView& view, const ResultLimits& limits,
                                            size_t span) {
  const auto hidden = static_cast<size_t>(limits.hidden);
  const RowsOfStates rows = limits.max_states > 0 ? view.state_rows[span] : RowsOfStates{};
  if (rows.count == 0) return {view.pooled + span * hidden, hidden};
  return {view.states + static_cast<size_t>(rows.begin) * hidden,
          static_cast<size_t>(rows.count) * hidden};
}

}  // namespace foretoken
