#include "kernels/step/publish.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "base/clock.h"
#include "kernels/cpu/op_table.h"
#include "kernels/plan_layout.h"

namespace foretoken::cpu {
namespace {

template <class T>
void copy(T* to, const T* from, int64_t count) {
  if (count > 0) std::memcpy(to, from, sizeof(T) * static_cast<size_t>(count));
}

// Spans with the ids and drafts that they can have.
void copy_spans(const ResultView& to, const ResultView& from, int32_t max_draft_tokens) {
  for (int i = 0; i < from.header->num_spans; ++i) {
    const SpanResult& in = from.spans[i];
    SpanResult& out = to.spans[i];
    std::memcpy(&out, &in, offsetof(SpanResult, ids));
    copy(out.ids, in.ids, max_draft_tokens + 1);
    copy(out.drafts, in.drafts, max_draft_tokens);
  }
}

void copy_logprobs(const ResultView& to, const ResultView& from, const ResultLimits& limits) {
  const int rows = std::min(from.header->num_logits_rows, limits.max_rows);
  copy(to.rows, from.rows, rows);
  for (int i = 0; i < rows; ++i) {
    const int64_t begin = int64_t{i} * limits.max_top;
    copy(to.top + begin, from.top + begin, std::min(from.rows[i].num_top, limits.max_top));
  }
}

void copy_pooled(const ResultView& to, const ResultView& from, const ResultLimits& limits) {
  for (int i = 0; i < from.header->num_spans; ++i) {
    if (!has_pooled(from.spans[i])) continue;
    const int64_t begin = int64_t{i} * limits.hidden;
    copy(to.pooled + begin, from.pooled + begin, limits.hidden);
    if (limits.max_states == 0) continue;
    const RowsOfStates rows = to.state_rows[i] = from.state_rows[i];
    const int64_t first = int64_t{rows.begin} * limits.hidden;
    copy(to.states + first, from.states + first, int64_t{rows.count} * limits.hidden);
  }
}

}  // namespace

void publish(const void* args, CpuPool&) {
  const auto& a = *static_cast<const PublishArgs*>(args);
  const uint64_t step = *a.step;
  const ResultView from = result_view(const_cast<void*>(a.result), a.limits);
  const ResultView to =
      result_view(a.ring + static_cast<int64_t>(step % kStepRingSize) * a.entry_bytes, a.limits);
  *to.header = *from.header;
  copy_spans(to, from, a.max_draft_tokens);
  if (a.with_logprobs != 0) copy_logprobs(to, from, a.limits);
  if (a.with_pooled != 0) copy_pooled(to, from, a.limits);
  if (a.stamps != nullptr) {
    StepStamps& stamps = a.stamps[step % kStepRingSize];
    stamps.published_ns = stamps.end_ns = now_ns();
  }
  *a.step = step + 1;
  static_cast<std::atomic<uint64_t>*>(a.word)->store(step + 1, std::memory_order_seq_cst);
}

}  // namespace foretoken::cpu
