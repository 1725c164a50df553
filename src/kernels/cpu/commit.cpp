#include "kernels/commit.h"

#include <algorithm>

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/token_page.h"
#include "kernels/plan_layout.h"

namespace foretoken::cpu {
namespace {

bool is_stop_id(const SlotParams& params, int32_t id) {
  const int32_t* end = params.stop_ids + params.num_stop_ids;
  return std::find(params.stop_ids, end, id) != end;
}

// Drafts that equal the sample of the row before them, counted from the first.
int count_accepted(const StepTensors& t, const SpanState& span) {
  const int32_t* drafts = t.token_ids + span.row_begin + span.num_rows - span.num_drafts;
  const int32_t* sampled = t.sampled + span.logits_begin + span.num_scored;
  int accepted = 0;
  while (accepted < span.num_drafts && drafts[accepted] == sampled[accepted]) ++accepted;
  return accepted;
}

void commit_ids(const CommitArgs& a, const SpanState& span, SpanResult& result) {
  SlotState& state = a.batch.slots[span.slot];
  const SlotParams& params = a.batch.params[span.slot];
  const int32_t* sampled = a.tensors.sampled + span.logits_begin + span.num_scored;
  const int accepted = count_accepted(a.tensors, span);
  DeviceFinish finish = DeviceFinish::kNone;
  for (int i = 0; i <= accepted && finish == DeviceFinish::kNone; ++i) {
    if (sampled[i] < 0) {
      finish = DeviceFinish::kError;
      break;
    }
    write_token(a.batch, span.slot, state.len, sampled[i]);
    ++state.len;
    result.ids[result.num_committed++] = sampled[i];
    if (is_stop_id(params, sampled[i])) {
      finish = DeviceFinish::kStop;
    } else if (state.len >= params.max_len) {
      finish = DeviceFinish::kLength;
    }
  }
  state.computed = state.len - 1;
  state.num_drafts = 0;
  state.finished = static_cast<int32_t>(finish);
  result.num_drafted = span.num_drafts;
  result.num_accepted = std::min(accepted, result.num_committed);
  result.finish = state.finished;
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
    if (span.num_logits > span.num_scored) {
      commit_ids(a, span, result);
    } else {
      advance(a.batch, span, result);
    }
  }
}

}  // namespace foretoken::cpu
