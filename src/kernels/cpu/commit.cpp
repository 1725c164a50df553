#include "kernels/commit.h"

#include <algorithm>

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/token_page.h"
#include "kernels/draft_entries.h"
#include "kernels/draft_math.h"
#include "kernels/plan_layout.h"

namespace foretoken::cpu {
namespace {

bool is_stop_id(const SlotParams& params, int32_t id) {
  const int32_t* end = params.stop_ids + params.num_stop_ids;
  return std::find(params.stop_ids, end, id) != end;
}

// The span's drafts as they were verified, and the ids sampled from the row before the first on.
struct Verified {
  const int32_t* drafts;
  const int32_t* sampled;
};

Verified verified(const StepTensors& t, const SpanState& span) {
  return {t.token_ids + span.row_begin + span.num_rows - span.num_drafts,
          t.sampled + span.logits_begin + span.num_scored};
}

// Accepted drafts, counted from the first.
int count_accepted(const CommitArgs& a, const SpanState& span, const Verified& v) {
  const SlotParams& params = a.batch.params[span.slot];
  const int32_t len = a.batch.slots[span.slot].len;
  const int most = num_verified(span, params, a.batch.slots[span.slot]);
  int accepted = 0;
  while (accepted < most) {
    const bool accepts = a.synthetic == nullptr ? v.drafts[accepted] == v.sampled[accepted]
                                                : draft_math::coin_accepts(a.synthetic[accepted],
                                                                           len + accepted, params);
    if (!accepts) break;
    ++accepted;
  }
  return accepted;
}

// Appends the accepted drafts and the id behind them as far as the sequence goes.
DeviceFinish append_ids(const CommitArgs& a, const SpanState& span, int accepted,
                        SpanResult& result) {
  SlotState& state = a.batch.slots[span.slot];
  const SlotParams& params = a.batch.params[span.slot];
  const Verified v = verified(a.tensors, span);
  const bool drops_bonus = a.drop_bonus != 0 && accepted > 0 && accepted == span.num_drafts;
  const int most = std::min(accepted + (drops_bonus ? 0 : 1), num_decided(span, params, state));
  for (int i = 0; i < most; ++i) {
    const int32_t id = i < accepted ? v.drafts[i] : v.sampled[i];
    if (id < 0) return DeviceFinish::kError;
    write_token(a.batch, span.slot, state.len, id);
    ++state.len;
    result.ids[result.num_committed++] = id;
    if (is_stop_id(params, id)) return DeviceFinish::kStop;
    if (state.len >= params.max_len) return DeviceFinish::kLength;
  }
  return DeviceFinish::kNone;
}

// Entries that the drafter wrote for drafts which turned out right stay exact.
void keep_entries(const BatchState& batch, int32_t slot) {
  SlotState& state = batch.slots[slot];
  DraftState& draft = state.draft;
  const int exact = std::min(draft.written, state.len - 1);
  if (exact > draft.computed) {
    raise_draft_counts(batch, slot, batch.params[slot].drafter, draft.computed, exact);
    draft.computed = exact;
  }
  draft.written = 0;
}

void commit_ids(const CommitArgs& a, const SpanState& span, SpanResult& result) {
  SlotState& state = a.batch.slots[span.slot];
  const Verified v = verified(a.tensors, span);
  const int accepted = count_accepted(a, span, v);
  const int num_drafted = num_verified(span, a.batch.params[span.slot], state);
  state.finished = static_cast<int32_t>(append_ids(a, span, accepted, result));
  state.computed = state.len - 1;
  state.num_drafts = 0;
  keep_entries(a.batch, span.slot);
  result.num_drafted = num_drafted;
  result.from_prediction = state.from_prediction;
  result.num_accepted = std::min(accepted, result.num_committed);
  result.finish = state.finished;
  std::copy_n(v.drafts, num_drafted, result.drafts);
  state.draft.since_draft =
      draft_math::since_draft_after(state.draft.since_draft, num_drafted, result.num_committed);
}

// A span without a sampling row. One that pools ends with its last prompt token.
void advance(const BatchState& batch, const SpanState& span, SpanResult& result) {
  SlotState& state = batch.slots[span.slot];
  state.computed += span.num_rows;
  const bool pools = batch.params[span.slot].pooling != static_cast<int32_t>(DevicePooling::kNone);
  if (!pools || span.num_rows == 0 || state.computed < state.len) return;
  state.finished = static_cast<int32_t>(DeviceFinish::kStop);
  result.finish = state.finished;
}

}  // namespace

void commit(const void* args, CpuPool&) {
  const auto& a = *static_cast<const CommitArgs*>(args);
  const PlanView plan = plan_view(const_cast<void*>(a.plan), a.limits);
  const ResultView out = result_view(a.result, a.result_limits);
  *out.header = ResultHeader{plan.header->step, plan.header->num_spans, a.tensors.counts->num_rows,
                             a.tensors.counts->num_logits_rows};
  for (int i = 0; i < plan.header->num_spans; ++i) {
    const SpanState& span = a.tensors.spans[i];
    SpanResult& result = out.spans[i];
    result = SpanResult{};
    result.slot = span.slot;
    result.logits_begin = span.logits_begin;
    result.num_scored = span.num_scored;
    if (has_sampled(span)) {
      commit_ids(a, span, result);
    } else {
      advance(a.batch, span, result);
    }
    const SlotState& state = a.batch.slots[span.slot];
    result.draft_missing = std::max(0, known_after(span, state) - state.draft.computed);
  }
}

}  // namespace foretoken::cpu
