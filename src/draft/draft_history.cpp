#include "draft/draft_history.h"

#include "base/check.h"
#include "kernels/draft/gru_step.h"
#include "kernels/gemm/activate.h"
#include "kernels/gemm/gemm.h"
#include "kernels/rows/move_rows.h"

namespace foretoken {

DraftHistory::DraftHistory(const BlockHead::Gru& gru, int32_t max_slots, DType dtype)
    : gru_(gru),
      max_slots_(max_slots),
      dtype_(dtype),
      hidden_(gru.input->inputs),
      size_(gru.state->inputs) {
  FT_CHECK(gru.input->outputs == 3 * size_ && gru.state->outputs == 3 * size_);
  FT_CHECK(gru.features->inputs == hidden_ + size_);
}

Status DraftHistory::take(Arena& arena) {
  const char* what = "what a drafter keeps of its drafts (lower --max-num-seqs)";
  const auto rows = static_cast<size_t>(max_slots_);
  const auto hidden = static_cast<size_t>(hidden_);
  const auto size = static_cast<size_t>(size_);
  const size_t act = dtype_size(dtype_);
  FT_ASSIGN_OR_RETURN(input_, arena.take(rows * hidden * act, what));
  for (float** gates : {&of_input_, &of_state_}) {
    FT_ASSIGN_OR_RETURN(*gates, arena.take_array<float>(rows * 3 * size, what));
  }
  FT_ASSIGN_OR_RETURN(before_, arena.take(rows * size * act, what));
  FT_ASSIGN_OR_RETURN(states_, arena.take_array<float>(rows * size, what));
  FT_ASSIGN_OR_RETURN(joined_, arena.take(rows * (hidden + size) * act, what));
  const auto rank = static_cast<size_t>(gru_.features->outputs);
  FT_ASSIGN_OR_RETURN(products_, arena.take_array<float>(rows * rank, what));
  return {};
}

void DraftHistory::step(Queue& queue, const Rows& draft, void* features) const {
  FT_CHECK(draft.max_rows > 0 && draft.max_rows <= max_slots_);
  carry(queue, draft);
  if (features == nullptr) return;
  const int32_t width = hidden_ + size_;
  place(queue, draft, {draft.states, draft.from, dtype_, hidden_}, {joined_, width, 0});
  place(queue, draft, {states_, draft.rows.row_slot, DType::kF32, size_},
        {joined_, width, hidden_});
  multiply(queue, draft, joined_, *gru_.features, products_);
  activate(queue, {.counts = draft.rows.counts,
                   .x = products_,
                   .out = features,
                   .max_rows = draft.max_rows,
                   .size = gru_.features->outputs,
                   .activation = Activation::kSilu,
                   .out_dtype = dtype_});
}

// The states go on by the tokens before.
void DraftHistory::carry(Queue& queue, const Rows& draft) const {
  place(queue, draft, {draft.embedded, nullptr, DType::kF32, hidden_}, {input_, hidden_, 0});
  multiply(queue, draft, input_, *gru_.input, of_input_);
  if (!draft.is_first) {
    place(queue, draft, {states_, draft.rows.row_slot, DType::kF32, size_}, {before_, size_, 0});
    multiply(queue, draft, before_, *gru_.state, of_state_);
  }
  gru_step(queue, {.counts = draft.rows.counts,
                   .of_input = of_input_,
                   .of_state = draft.is_first ? nullptr : of_state_,
                   .row_slot = draft.rows.row_slot,
                   .states = states_,
                   .max_rows = draft.max_rows,
                   .size = size_});
}

void DraftHistory::place(Queue& queue, const Rows& draft, const Source& source,
                         const Target& target) const {
  move_rows(queue, {.counts = draft.rows.counts,
                    .in = source.rows,
                    .out = target.rows,
                    .from = source.from,
                    .to = nullptr,
                    .row_kind = RowKind::kToken,
                    .max_rows = draft.max_rows,
                    .width = source.width,
                    .out_stride = target.stride,
                    .out_offset = target.offset,
                    .in_dtype = source.dtype,
                    .out_dtype = dtype_});
}

void DraftHistory::multiply(Queue& queue, const Rows& draft, const void* x, const Linear& linear,
                            float* y) const {
  gemm(queue, {.counts = draft.rows.counts,
               .x = x,
               .weight = linear.weight.get(),
               .y = y,
               .bias = nullptr,
               .row_kind = RowKind::kToken,
               .row_offset = 0,
               .max_rows = draft.max_rows,
               .n = linear.outputs,
               .k = linear.inputs,
               .dtype = dtype_,
               .out_dtype = DType::kF32});
}

}  // namespace foretoken
