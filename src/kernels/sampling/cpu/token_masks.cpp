#include "kernels/sampling/token_masks.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "base/clock.h"
#include "base/sleep_exactly.h"
#include "base/spin.h"
#include "kernels/cpu/hot.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/rows.h"
#include "kernels/draft_entries.h"
#include "kernels/logits_row.h"

namespace foretoken::cpu {
namespace {

constexpr int kSpinsBeforeSleep = 400;
constexpr int64_t kSleepNs = 20'000;

uint64_t acquire(uint64_t* word) { return std::atomic_ref(*word).load(std::memory_order_acquire); }

void post_span(const ExportSpansArgs& a, const SpanState& span, int32_t num_draft_tokens,
               MaskSpan& out) {
  const BatchState& batch = a.batch;
  const SlotState& state = batch.slots[span.slot];
  const SlotParams& params = batch.params[span.slot];
  out.grammar = params.grammar;
  out.len = state.len;
  out.num_repaired = a.num_repaired > 0 ? num_repaired(state, a.num_repaired) : 0;
  out.num_tail = mask_tail(state.len - params.prompt_len, a.exchange.rows_each);
  for (int32_t i = 0; i < out.num_tail; ++i) {
    out.tail[i] = history_id(batch, span.slot, state.len - out.num_tail + i);
  }
  out.num_draft_tokens = num_draft_tokens;
  std::copy_n(state.drafts, num_draft_tokens, out.drafts);
}

FT_HOT void forbid(float* logits, uint32_t allowed) {
  for (uint32_t bit = 0; bit < 32; ++bit) {
    logits[bit] =
        (allowed >> bit & 1u) != 0 ? logits[bit] : -std::numeric_limits<float>::infinity();
  }
}

void mask_row(float* logits, const uint32_t* mask, int32_t vocab) {
  const int32_t whole = vocab / 32;
  for (int32_t w = 0; w < whole; ++w) {
    if (mask[w] != ~0u) forbid(logits + int64_t{w} * 32, mask[w]);
  }
  for (int32_t id = whole * 32; id < vocab; ++id) {
    if ((mask[whole] >> (id % 32) & 1u) == 0) {
      logits[id] = -std::numeric_limits<float>::infinity();
    }
  }
}

}  // namespace

void export_spans(const void* args, CpuPool&) {
  const auto& a = *static_cast<const ExportSpansArgs*>(args);
  const MaskExchange& x = a.exchange;
  const uint64_t ticket = a.ticket->next;
  const bool has_room =
      acquire(x.taken) + kMaskRing > ticket && (a.num_repaired == 0 || acquire(x.resting) == 0);
  MaskSpan* to = x.spans + static_cast<int64_t>(ticket % kMaskRing) * x.max_spans;
  for (int32_t i = 0; i < a.counts->num_spans; ++i) {
    const SpanState& span = a.spans[i];
    const bool wanted = wants_masks(a.batch, span, a.drafter, a.num_repaired);
    SlotState& state = a.batch.slots[span.slot];
    const int32_t num_draft_tokens =
        a.drafter == kVerifying ? span.num_draft_tokens : state.num_draft_tokens;
    if (has_room && wanted) post_span(a, span, num_draft_tokens, to[i]);
    if (has_room && !wanted) to[i].grammar = to[i].num_repaired = 0;
    if (!wanted) continue;
    state.mask_begin = i * x.rows_each;
    state.num_masks = state.num_decided = 0;
  }
  *a.ticket = {ticket + 1, has_room ? 1 : 0, a.ticket->num_late};
  if (has_room) {
    x.num_spans[ticket % kMaskRing] = a.counts->num_spans;
    std::atomic_ref(*x.posted).store(ticket + 1, std::memory_order_release);
  }
  std::atomic_ref(*x.passed).store(ticket + 1, std::memory_order_release);
}

void await_masks(const void* args, CpuPool&) {
  const auto& a = *static_cast<const AwaitMasksArgs*>(args);
  if (a.ticket->posted == 0) return;
  const MaskExchange& x = a.exchange;
  const uint64_t ticket = a.ticket->next - 1;
  const bool verifies = a.drafter == kVerifying;
  const int64_t deadline =
      now_ns() + (verifies ? mask_wait_ns(a.budget_ns, a.ticket->num_late) : a.budget_ns);
  for (int spins = 0; acquire(x.answered) <= ticket && now_ns() < deadline; ++spins) {
    if (spins < kSpinsBeforeSleep) {
      spin_pause(spins);
    } else {
      sleep_exactly(kSleepNs);
    }
  }
  if (verifies) a.ticket->num_late = acquire(x.answered) > ticket ? 0 : a.ticket->num_late + 1;
  uint64_t* answers = x.answers + static_cast<int64_t>(ticket % kMaskRing) * x.max_spans;
  for (int32_t i = 0; i < a.counts->num_spans; ++i) {
    const SpanState& span = a.spans[i];
    if (!has_sampled(span) || a.params[span.slot].grammar == 0) continue;
    const MaskAnswer answer = mask_answer(acquire(&answers[i]), ticket);
    SlotState& state = a.slots[span.slot];
    if (a.repairs != 0 && answer.num_decided > 0) {
      state.num_draft_tokens = answer.num_decided - 1;
      std::copy_n(x.repairs + int64_t{i} * kMaxDraftTokens, state.num_draft_tokens, state.drafts);
    }
    state.num_masks = answer.num_masks;
    state.num_decided = answer.num_decided;
  }
}

void apply_masks(const void* args, CpuPool& pool) {
  const auto& a = *static_cast<const ApplyMasksArgs*>(args);
  const int rows = live_rows(*a.tensors.counts, RowKind::kLogits, a.row_offset, a.max_rows);
  pool.parallel_for(rows, [&](int64_t i, int) {
    const LogitsRow at = logits_row(a.tensors, a.slots, a.row_offset + static_cast<int32_t>(i));
    const SlotState& state = a.slots[at.slot];
    const int32_t row = at.position - (state.len - 1);
    if (at.scored || a.params[at.slot].grammar == 0 || row >= state.num_masks) return;
    mask_row(a.logits + i * a.vocab, a.masks + int64_t{state.mask_begin + row} * a.mask_words,
             a.vocab);
  });
}

}  // namespace foretoken::cpu
