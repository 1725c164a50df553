#include "kernels/draft/draft_rows.h"

#include <algorithm>

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/token_page.h"
#include "kernels/draft/cpu/draft_pass.h"
#include "kernels/draft_entries.h"
#include "kernels/draft_lists.h"
#include "kernels/plan_layout.h"

namespace foretoken::cpu {
namespace {

void add_row(const DraftRowsArgs& a, int32_t slot, int32_t position, DraftPass& pass) {
  const int32_t id = token_at(a.batch, slot, position);
  pass.add_row(slot, position, a.token_map != nullptr ? a.token_map[id] : id,
               position > 0 ? kv_slot_at(a.batch, slot, position - 1) : 0,
               std::max(position - 1, 0));
}

// Adds the span's rows and returns whether its slot has every entry of its known tokens.
bool catch_up(const DraftRowsArgs& a, const SpanPlan& plan, const SpanState& span,
              DraftPass& pass) {
  SlotState& state = a.batch.slots[span.slot];
  const int known = known_after(span, state);
  const int end = std::min(known, a.max_len);
  const int first = std::max(state.draft.computed, std::min(a.first_entry, end));
  const int last = has_sampled(span) ? std::min(end, known - 1) : end;
  const int findable = a.in_order != 0 ? first : last;
  const int begin = exact_entries(a.batch, span.slot, a.drafter, first, std::max(first, findable));
  const int count = std::max(0, std::min({end - begin, plan.draft_rows, pass.rows_left()}));
  for (int position = begin; position < begin + count; ++position) {
    add_row(a, span.slot, position, pass);
  }
  raise_draft_counts(a.batch, span.slot, a.drafter, state.draft.computed, begin + count);
  state.draft.computed = begin + count;
  return count > 0 && state.draft.computed == known;
}

}  // namespace

void draft_rows(const void* args, CpuPool&) {
  const auto& a = *static_cast<const DraftRowsArgs*>(args);
  const PlanView plan = plan_view(const_cast<void*>(a.plan), a.limits);
  DraftPass pass(a.out, a.batch, a.max_rows);
  for (int i = 0; i < plan.header->num_spans; ++i) {
    const SpanState& span = a.spans[i];
    if (a.batch.params[span.slot].drafter != a.drafter || span.num_rows == 0) continue;
    SlotState& state = a.batch.slots[span.slot];
    if (!has_other_drafts(state, a.batch.params[span.slot], a.drafter)) state.num_draft_tokens = 0;
    const bool wanted = has_sampled(span) && state.draft.num_draft_tokens > 0 &&
                        state.finished == static_cast<int32_t>(DeviceFinish::kNone);
    const bool complete = a.last_only != 0
                              ? wanted && state.len <= a.max_len && pass.rows_left() > 0
                              : catch_up(a, plan.spans[i], span, pass);
    if (wanted && complete) {
      if (a.last_only != 0) add_row(a, span.slot, state.len - 1, pass);
      pass.want_logits();
    } else {
      state.draft.num_draft_tokens = 0;
    }
  }
  pass.finish();
}

}  // namespace foretoken::cpu
