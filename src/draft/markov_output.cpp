#include "draft/markov_output.h"

#include <cmath>

#include "base/check.h"
#include "kernels/comm/collectives.h"
#include "kernels/draft/draft_chain.h"
#include "kernels/draft/spread_logits.h"
#include "kernels/gemm/gemm.h"
#include "kernels/rows/embed.h"
#include "kernels/rows/move_rows.h"
#include "kernels/sampling/sample.h"

namespace foretoken {

MarkovOutput::MarkovOutput(Device& device, const Sizes& sizes, const BlockHead::Markov& markov)
    : device_(device),
      sizes_(sizes),
      markov_(markov),
      rank_(markov.output->inputs),
      embedding_width_(markov.gru.input != nullptr ? markov.gru.input->inputs : rank_),
      arena_(device, MemoryKind::kDevice) {
  if (markov.gru.input != nullptr) history_.emplace(markov.gru, sizes.max_spans, sizes.dtype);
}

Status MarkovOutput::take() {
  const char* what = "a drafter's logits (lower --max-num-seqs)";
  const auto spans = static_cast<size_t>(sizes_.max_spans);
  const auto matrix_rows = static_cast<size_t>(sizes_.matrix_rows);
  const auto rank = static_cast<size_t>(rank_);
  const size_t act = dtype_size(sizes_.dtype);
  const size_t all = spans * static_cast<size_t>(sizes_.max_draft_tokens) * matrix_rows;
  for (float** logits : {&base_, &part_}) {
    FT_ASSIGN_OR_RETURN(*logits, arena_.take_array<float>(all, what));
    if (!sizes_.is_cut) break;
  }
  FT_ASSIGN_OR_RETURN(logits_, arena_.take_array<float>(spans * matrix_rows, what));
  if (spreads()) {
    const auto vocab = static_cast<size_t>(sizes_.target_vocab);
    FT_ASSIGN_OR_RETURN(spread_, arena_.take_array<float>(spans * vocab, what));
  }
  const auto width = static_cast<size_t>(embedding_width_);
  FT_ASSIGN_OR_RETURN(embedded_, arena_.take_array<float>(spans * width, what));
  if (history_) FT_RETURN_IF_ERROR(history_->take(arena_));
  FT_ASSIGN_OR_RETURN(markov_rows_, arena_.take(spans * rank * act, what));
  if (rates()) {
    const auto read = static_cast<size_t>(markov_.confidence->inputs);
    FT_ASSIGN_OR_RETURN(features_, arena_.take(spans * read * act, what));
    FT_ASSIGN_OR_RETURN(confidence_, arena_.take_array<float>(spans, what));
  }
  FT_ASSIGN_OR_RETURN(rows_.counts, arena_.take_array<StepCounts>(1, what));
  for (int32_t** ids : {&rows_.token_ids, &rows_.positions, &rows_.row_slot, &rows_.logits_rows,
                        &rows_.sampled, &from_}) {
    FT_ASSIGN_OR_RETURN(*ids, arena_.take_array<int32_t>(spans, what));
  }
  return sizes_.probabilistic ? Status() : plain_.take(device_, arena_, sizes_.max_spans);
}

void MarkovOutput::draw(Queue& queue, const OutputMatrix& matrix, const void* states,
                        const BlockPass& block, const DraftStep& step,
                        const DraftShape& shape) const {
  FT_CHECK(shape.max_spans <= sizes_.max_spans && matrix.rows == sizes_.matrix_rows);
  FT_CHECK(shape.num_draft_tokens <= sizes_.max_draft_tokens);
  FT_CHECK((matrix.id_map != nullptr) == sizes_.mapped);
  FT_CHECK(!history_ || step.batch.num_slots <= sizes_.max_spans);
  const Pass pass{.queue = queue,
                  .states = states,
                  .drawn = block.drawn(),
                  .step = step,
                  .max_spans = shape.max_spans,
                  .max_logits_rows = shape.max_spans * shape.num_draft_tokens};
  multiply(pass, matrix);
  for (int draft = 0; draft < shape.num_draft_tokens; ++draft) {
    lay_out(pass, matrix, draft);
    embed_before(pass, draft);
    add_before(pass, draft);
    if (rates()) rate(pass);
    choose(pass, matrix);
  }
  lay_out(pass, matrix, shape.num_draft_tokens);
}

// The output matrix with all rows.
void MarkovOutput::multiply(const Pass& pass, const OutputMatrix& matrix) const {
  const Sharding& sharding = matrix.sharding;
  const bool cut = cuts_columns(matrix.rows, sharding.size);
  FT_CHECK(!cut || part_ != nullptr);
  gemm(pass.queue, {.counts = pass.drawn.counts,
                    .x = pass.states,
                    .weight = matrix.weight,
                    .y = cut ? part_ : base_,
                    .bias = nullptr,
                    .row_kind = RowKind::kLogits,
                    .row_offset = 0,
                    .max_rows = pass.max_logits_rows,
                    .n = column_part(matrix.rows, sharding.rank, sharding.size).count,
                    .k = matrix.hidden,
                    .dtype = matrix.dtype,
                    .out_dtype = DType::kF32});
  if (!cut) return;
  gather_columns(pass.queue, {.comm = sharding.comm,
                              .counts = pass.drawn.counts,
                              .part = part_,
                              .out = base_,
                              .row_offset = 0,
                              .max_rows = pass.max_logits_rows,
                              .cols = matrix.rows});
}

// Takes the draft before and lays out the rows of this one.
void MarkovOutput::lay_out(const Pass& pass, const OutputMatrix& matrix, int draft) const {
  const double least = sizes_.least_confidence;
  draft_chain(pass.queue, {.slots = pass.step.batch.slots,
                           .counts = pass.drawn.counts,
                           .logits_rows = pass.drawn.logits_rows,
                           .row_slot = pass.drawn.row_slot,
                           .before = pass.drawn.positions,
                           .token_ids = pass.drawn.token_ids,
                           .sampled = pass.drawn.sampled,
                           .drawn = draft > 0 ? rows_.sampled : nullptr,
                           .confidence = rates() ? confidence_ : nullptr,
                           .id_map = spreads() ? nullptr : matrix.id_map,
                           .out_counts = rows_.counts,
                           .out_ids = rows_.token_ids,
                           .out_from = from_,
                           .out_positions = rows_.positions,
                           .out_slot = rows_.row_slot,
                           .out_logits_rows = rows_.logits_rows,
                           // Confidences are logits here.
                           .least = rates() ? static_cast<float>(std::log(least / (1 - least))) : 0,
                           .draft = draft,
                           .num_slots = pass.step.batch.num_slots,
                           .max_rows = pass.max_logits_rows,
                           .max_out = pass.max_spans,
                           .lead = sizes_.leads ? 1 : 0});
}

// What the token before each draft is turned into, or all tokens before.
void MarkovOutput::embed_before(const Pass& pass, int draft) const {
  embed(pass.queue, {.counts = rows_.counts,
                     .token_ids = rows_.token_ids,
                     .table = markov_.embedding,
                     .out = embedded_,
                     .max_rows = pass.max_spans,
                     .vocab = sizes_.target_vocab,
                     .hidden = embedding_width_,
                     .dtype = sizes_.dtype,
                     .scale = markov_.embedding_scale});
  if (!history_) {
    move(pass, {embedded_, nullptr, DType::kF32, rank_}, {markov_rows_, sizes_.dtype, rank_, 0});
    return;
  }
  history_->step(pass.queue,
                 {.rows = rows_,
                  .max_rows = pass.max_spans,
                  .embedded = embedded_,
                  .states = pass.states,
                  .from = from_,
                  .is_first = draft == 0},
                 draft >= markov_.plain_drafts ? markov_rows_ : nullptr);
}

void MarkovOutput::add_before(const Pass& pass, int draft) const {
  move(pass, {base_, from_, DType::kF32, sizes_.matrix_rows},
       {logits_, DType::kF32, sizes_.matrix_rows, 0});
  if (draft < markov_.plain_drafts) return;
  gemm(pass.queue, {.counts = rows_.counts,
                    .x = markov_rows_,
                    .weight = markov_.output->weight.get(),
                    .y = logits_,
                    .bias = nullptr,
                    .row_kind = RowKind::kLogits,
                    .row_offset = 0,
                    .max_rows = pass.max_spans,
                    .n = sizes_.matrix_rows,
                    .k = rank_,
                    .dtype = sizes_.dtype,
                    .out_dtype = DType::kF32,
                    .add = 1});
}

// How sure each draft is, as a logit.
void MarkovOutput::rate(const Pass& pass) const {
  const Linear& confidence = *markov_.confidence;
  const int32_t width = confidence.inputs;
  move(pass, {pass.states, from_, sizes_.dtype, sizes_.hidden},
       {features_, sizes_.dtype, width, 0});
  if (width > sizes_.hidden) {
    move(pass, {markov_rows_, nullptr, sizes_.dtype, rank_},
         {features_, sizes_.dtype, width, sizes_.hidden});
  }
  gemm(pass.queue, {.counts = rows_.counts,
                    .x = features_,
                    .weight = confidence.weight.get(),
                    .y = confidence_,
                    .bias = confidence.bias,
                    .row_kind = RowKind::kLogits,
                    .row_offset = 0,
                    .max_rows = pass.max_spans,
                    .n = 1,
                    .k = width,
                    .dtype = sizes_.dtype,
                    .out_dtype = DType::kF32});
}

void MarkovOutput::choose(const Pass& pass, const OutputMatrix& matrix) const {
  StepTensors rows = rows_;
  BatchState batch = pass.step.batch;
  if (!sizes_.probabilistic) plain_.put(&rows, &batch);
  if (spreads()) {
    spread_logits(pass.queue, {.counts = rows_.counts,
                               .in = logits_,
                               .id_map = matrix.id_map,
                               .out = spread_,
                               .row_offset = 0,
                               .max_rows = pass.max_spans,
                               .n = matrix.rows,
                               .vocab = sizes_.target_vocab});
  }
  sample(pass.queue, {.logits = spreads() ? spread_ : logits_,
                      .tensors = rows,
                      .batch = batch,
                      .row_offset = 0,
                      .max_rows = pass.max_spans,
                      .vocab = spreads() ? sizes_.target_vocab : sizes_.matrix_rows});
}

void MarkovOutput::move(const Pass& pass, const RowsIn& in, const RowsOut& out) const {
  move_rows(pass.queue, {.counts = rows_.counts,
                         .in = in.rows,
                         .out = out.rows,
                         .from = in.from,
                         .to = nullptr,
                         .row_kind = RowKind::kLogits,
                         .max_rows = pass.max_spans,
                         .width = in.width,
                         .out_stride = out.stride,
                         .out_offset = out.offset,
                         .in_dtype = in.dtype,
                         .out_dtype = out.dtype});
}

}  // namespace foretoken
