#include "kernels/step/upload.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "base/clock.h"
#include "kernels/cpu/op_table.h"
#include "kernels/cpu/token_page.h"
#include "kernels/draft_lists.h"
#include "kernels/plan_layout.h"
#include "kernels/step/plan_check.h"

namespace foretoken::cpu {
namespace {

void check_plan(const PlanView& plan, const UploadArgs& args, uint64_t step) {
  const PlanHeader& header = *plan.header;
  if (header.step != step) {
    throw std::runtime_error("plan of step " + std::to_string(header.step) +
                             " found in the ring entry of step " + std::to_string(step));
  }
  const auto all = [](const auto* parts, int count, const auto& is_valid) {
    return std::all_of(parts, parts + count, is_valid);
  };
  const bool valid =
      is_valid_header(header, args.limits) &&
      all(plan.inits, header.num_inits,
          [&](const SlotInit& init) { return is_valid_init(init, header, args.batch); }) &&
      all(plan.block_updates, header.num_block_updates,
          [&](const BlockUpdate& update) { return is_valid_block_update(update, args.batch); }) &&
      all(plan.spans, header.num_spans,
          [&](const SpanPlan& span) { return is_valid_span(span, header, args.batch); });
  if (!valid) {
    throw std::runtime_error("plan of step " + std::to_string(step) + " exceeds its limits");
  }
}

void copy_lists(const SlotLists& lists, const SlotInit& init, const uint32_t* words) {
  const auto take = [&](auto* to, int64_t count) {
    if (count == 0) return;
    std::memcpy(to, words, sizeof(uint32_t) * static_cast<size_t>(count));
    words += count;
  };
  static_assert(sizeof(LogitBias) == 2 * sizeof(uint32_t));
  const SlotParams& params = init.params;
  take(lists.logit_bias + int64_t{init.slot} * kMaxLogitBias, 2 * params.num_logit_bias);
  take(lists.bad_words + int64_t{init.slot} * kMaxBadWordInts, params.num_bad_word_ints);
  if (params.has_allowed_ids != 0) {
    take(lists.allowed_ids + int64_t{init.slot} * lists.mask_words, lists.mask_words);
  }
  take(lists.prediction + int64_t{init.slot} * lists.max_prediction, params.num_prediction);
  take(lists.flex + int64_t{init.slot} * lists.max_flex_words, params.num_flex_words);
}

void apply_init(const BatchState& batch, const SlotInit& init, const uint32_t* words) {
  batch.params[init.slot] = init.params;
  if (batch.lists.flex != nullptr) {
    // Of the slot's last request, whose expressions are not this one's.
    std::fill_n(batch.lists.flex + int64_t{init.slot} * batch.lists.max_flex_words, 2, 0u);
  }
  if (list_words(init.params, batch.lists) > 0) {
    copy_lists(batch.lists, init, words + init.word_offset);
  }
  SlotState& state = batch.slots[init.slot];
  state.len = init.len;
  state.computed = init.computed;
  state.finished = static_cast<int32_t>(DeviceFinish::kNone);
  state.num_draft_tokens = 0;
  state.from_prediction = 0;
  state.drafted_by = init.params.drafter;
  state.found_by = 0;
  state.learnt = learnt_before(init);
  state.draft = DraftState{};
  state.draft.computed = init.draft_computed;
  state.branch = BranchState{};
  std::fill_n(state.lookup_rates, kMaxDrafters, DraftRates{});
}

void apply_block_update(const BatchState& batch, const BlockUpdate& update) {
  const int64_t row = int64_t{update.slot} * batch.max_blocks;
  if (update.windowed != 0) {
    batch.window_tables[row + update.index] = update.block;
    return;
  }
  int32_t* table = batch.block_tables + row;
  table[update.index] = update.block;
  if (update.epoch == 0) return;
  const int32_t parent = update.index > 0 ? table[update.index - 1] : -1;
  const uint32_t parent_epoch = parent >= 0 ? batch.page_headers[parent].epoch : 0;
  batch.page_headers[update.block] = PageHeader{parent, parent_epoch, update.epoch, 0, {}};
}

}  // namespace

void upload(const void* args, CpuPool&) {
  const auto& a = *static_cast<const UploadArgs*>(args);
  const uint64_t step = *a.step;
  if (a.stamps != nullptr) a.stamps[step % kStepRingSize].begin_ns = now_ns();
  const char* entry = a.ring + static_cast<int64_t>(step % kStepRingSize) * a.entry_bytes;
  const PlanView from = plan_view(const_cast<char*>(entry), a.limits);
  const PlanView to = plan_view(a.plan, a.limits);
  check_plan(from, a, step);
  *to.header = *from.header;
  std::memcpy(to.spans, from.spans, sizeof(SpanPlan) * static_cast<size_t>(from.header->num_spans));
  if (a.only_spans != 0) return;
  for (int i = 0; i < from.header->num_inits; ++i) {
    apply_init(a.batch, from.inits[i], from.words);
  }
  for (int i = 0; i < from.header->num_block_updates; ++i) {
    apply_block_update(a.batch, from.block_updates[i]);
  }
  for (int i = 0; i < from.header->num_spans; ++i) {
    const SpanPlan& span = from.spans[i];
    for (int t = 0; t < span.num_new_ids; ++t) {
      write_token(a.batch, span.slot, span.write_position + t, from.tokens[span.token_offset + t]);
    }
  }
}

}  // namespace foretoken::cpu
