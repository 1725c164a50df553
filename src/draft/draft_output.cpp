#include "draft/draft_output.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/comm/collectives.h"
#include "kernels/draft/cluster_logits.h"
#include "kernels/draft/spread_logits.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/head_argmax.h"
#include "kernels/rows/softcap.h"
#include "kernels/sampling/sample.h"

namespace foretoken {
namespace {

constexpr int32_t kTile = 16;

}  // namespace

OutputMatrix output_matrix_of(const DraftHead::Head& head, const ModelConfig& layer) {
  return {.weight = head.weight,
          .id_map = head.id_map,
          .rows = head.rows,
          .hidden = layer.hidden_size,
          .dtype = layer.dtype,
          .softcap = layer.logits_softcap,
          .sharding = head.sharding,
          .clusters = head.clusters};
}

DraftOutput::DraftOutput(Device& device, const Sizes& sizes)
    : device_(device),
      sizes_(sizes),
      arena_(device, MemoryKind::kDevice),
      tile_(std::min(kTile, sizes.max_logits_rows)) {}

Status DraftOutput::take() {
  if (!sizes_.probabilistic) {
    const int64_t bytes = head_argmax_bytes(sizes_.max_logits_rows, sizes_.matrix_rows);
    FT_ASSIGN_OR_RETURN(argmax_, arena_.take(static_cast<size_t>(bytes), "a drafter's choices"));
    if (sizes_.cut) {
      FT_ASSIGN_OR_RETURN(keys_,
                          arena_.take_array<uint64_t>(static_cast<size_t>(sizes_.max_logits_rows),
                                                      "a drafter's choices"));
    }
    if (sizes_.clusters > 0 || sizes_.branching_rows > 0) {
      const int32_t rows = std::max(sizes_.max_logits_rows, sizes_.branching_rows);
      FT_RETURN_IF_ERROR(plain_.take(device_, arena_, rows));
    } else if (!sizes_.masked) {
      return {};
    }
  }
  const auto tile = static_cast<size_t>(tile_);
  const char* what = sizes_.clusters > 0 ? "a drafter's logits"
                                         : "a drafter's logits (use draft_sample_method greedy)";
  if (sizes_.clusters > 0) {
    FT_ASSIGN_OR_RETURN(
        scores_, arena_.take_array<float>(tile * static_cast<size_t>(sizes_.clusters), what));
  }
  FT_ASSIGN_OR_RETURN(
      logits_, arena_.take_array<float>(tile * static_cast<size_t>(sizes_.matrix_rows), what));
  if (sizes_.cut) {
    FT_ASSIGN_OR_RETURN(
        part_, arena_.take_array<float>(tile * static_cast<size_t>(sizes_.matrix_rows), what));
  }
  if (!sizes_.mapped) return {};
  FT_ASSIGN_OR_RETURN(
      spread_, arena_.take_array<float>(tile * static_cast<size_t>(sizes_.target_vocab), what));
  return {};
}

void DraftOutput::draw(Queue& queue, const OutputMatrix& matrix, const void* states,
                       const Rows& rows, const DraftStep& step) const {
  const auto& [tensors, max_rows, alternatives] = rows;
  FT_CHECK(alternatives == nullptr || sizes_.branching_rows > 0);
  FT_CHECK(max_rows <= sizes_.max_logits_rows && matrix.rows <= sizes_.matrix_rows);
  FT_CHECK(matrix.id_map == nullptr || sizes_.mapped || !sizes_.probabilistic);
  const bool masked = step.masks.ticket != nullptr;
  FT_CHECK(!masked || sizes_.masked);
  FT_CHECK(matrix.clusters.count <= sizes_.clusters);
  if (!sizes_.probabilistic && !masked && !matrix.clusters.exist() && alternatives == nullptr) {
    choose_best(queue, matrix, states, tensors, max_rows);
    return;
  }
  if (masked) await(queue, step);
  const int64_t row_bytes = matrix.hidden * static_cast<int64_t>(dtype_size(matrix.dtype));
  for (int32_t offset = 0; offset < max_rows; offset += tile_) {
    sample_tile(queue, matrix,
                {.states = static_cast<const char*>(states) + offset * row_bytes,
                 .rows = tensors,
                 .step = step,
                 .offset = offset,
                 .max_rows = std::min(tile_, max_rows - offset),
                 .alternatives = alternatives});
  }
}

// Ranks that each have rows of the matrix compare their best ones.
void DraftOutput::choose_best(Queue& queue, const OutputMatrix& matrix, const void* states,
                              const StepTensors& rows, int32_t max_rows) const {
  const Sharding& sharding = matrix.sharding;
  const ColumnPart own = column_part(matrix.rows, sharding.rank, sharding.size);
  const bool cut = cuts_columns(matrix.rows, sharding.size);
  FT_CHECK(!cut || sizes_.cut);
  head_argmax(queue, {.counts = rows.counts,
                      .x = states,
                      .weight = matrix.weight,
                      .id_map = matrix.id_map != nullptr ? matrix.id_map + own.begin : nullptr,
                      .ids = rows.sampled,
                      .workspace = argmax_,
                      .max_rows = max_rows,
                      .n = own.count,
                      .k = matrix.hidden,
                      .dtype = matrix.dtype,
                      .keys = cut ? keys_ : nullptr,
                      .first_row = own.begin});
  if (!cut) return;
  gather_argmax(queue, {.comm = sharding.comm,
                        .counts = rows.counts,
                        .keys = keys_,
                        .id_map = matrix.id_map,
                        .ids = rows.sampled,
                        .max_rows = max_rows});
}

void DraftOutput::await(Queue& queue, const DraftStep& step) const {
  if (step.masks.waits) await_own(queue, step);
  if (step.masks.comm == nullptr) return;
  const MaskExchange& masks = step.masks.exchange;
  share_masks(queue, {.comm = step.masks.comm,
                      .counts = step.tensors.counts,
                      .spans = step.tensors.spans,
                      .slots = step.batch.slots,
                      .params = step.batch.params,
                      .masks = masks.masks,
                      .mask_words = masks.mask_words,
                      .max_spans = masks.max_spans,
                      .max_rows = masks.max_spans * masks.rows_each});
}

void DraftOutput::await_own(Queue& queue, const DraftStep& step) {
  await_masks(queue, {.counts = step.tensors.counts,
                      .spans = step.tensors.spans,
                      .slots = step.batch.slots,
                      .params = step.batch.params,
                      .exchange = step.masks.exchange,
                      .ticket = step.masks.ticket,
                      .budget_ns = step.masks.budget_ns,
                      .drafter = step.index,
                      .repairs = 0});
}

void DraftOutput::multiply_by(Queue& queue, const Factor& factor, const OutputMatrix& matrix,
                              const Tile& tile) {
  gemm(queue, {.counts = tile.rows.counts,
               .x = tile.states,
               .weight = factor.weight,
               .y = factor.y,
               .bias = nullptr,
               .row_kind = RowKind::kLogits,
               .row_offset = tile.offset,
               .max_rows = tile.max_rows,
               .n = factor.n,
               .k = matrix.hidden,
               .dtype = matrix.dtype,
               .out_dtype = DType::kF32});
}

void DraftOutput::multiply_clusters(Queue& queue, const OutputMatrix& matrix,
                                    const Tile& tile) const {
  const DraftHead::Clusters& clusters = matrix.clusters;
  multiply_by(queue, {clusters.centroids, clusters.count, scores_}, matrix, tile);
  cluster_logits(queue, {.counts = tile.rows.counts,
                         .x = tile.states,
                         .scores = scores_,
                         .table = clusters.table,
                         .ids = clusters.ids,
                         .out = logits_,
                         .row_offset = tile.offset,
                         .max_rows = tile.max_rows,
                         .clusters = clusters.count,
                         .each = clusters.each,
                         .top = clusters.top,
                         .k = matrix.hidden,
                         .vocab = matrix.rows,
                         .dtype = matrix.dtype});
}

// Logits of the tile's rows.
void DraftOutput::multiply(Queue& queue, const OutputMatrix& matrix, const Tile& tile) const {
  if (matrix.clusters.exist()) return multiply_clusters(queue, matrix, tile);
  const Sharding& sharding = matrix.sharding;
  const bool cut = cuts_columns(matrix.rows, sharding.size);
  const auto columns = column_part(matrix.rows, sharding.rank, sharding.size).count;
  multiply_by(queue, {matrix.weight, columns, cut ? part_ : logits_}, matrix, tile);
  if (!cut) return;
  gather_columns(queue, {.comm = sharding.comm,
                         .counts = tile.rows.counts,
                         .part = part_,
                         .out = logits_,
                         .row_offset = tile.offset,
                         .max_rows = tile.max_rows,
                         .cols = matrix.rows});
}

void DraftOutput::sample_tile(Queue& queue, const OutputMatrix& matrix, const Tile& tile) const {
  multiply(queue, matrix, tile);
  if (matrix.softcap > 0) {
    softcap(queue, {.counts = tile.rows.counts,
                    .x = logits_,
                    .row_kind = RowKind::kLogits,
                    .row_offset = tile.offset,
                    .max_rows = tile.max_rows,
                    .size = matrix.rows,
                    .cap = matrix.softcap});
  }
  const bool mapped = matrix.id_map != nullptr;
  if (mapped) {
    spread_logits(queue, {.counts = tile.rows.counts,
                          .in = logits_,
                          .id_map = matrix.id_map,
                          .out = spread_,
                          .row_offset = tile.offset,
                          .max_rows = tile.max_rows,
                          .n = matrix.rows,
                          .vocab = sizes_.target_vocab});
  }
  float* logits = mapped ? spread_ : logits_;
  const int32_t vocab = mapped ? sizes_.target_vocab : matrix.rows;
  const DraftMasks& masks = tile.step.masks;
  if (masks.ticket != nullptr) {
    apply_masks(queue, {.logits = logits,
                        .tensors = tile.rows,
                        .slots = tile.step.batch.slots,
                        .params = tile.step.batch.params,
                        .masks = masks.exchange.masks,
                        .mask_words = masks.exchange.mask_words,
                        .row_offset = tile.offset,
                        .max_rows = tile.max_rows,
                        .vocab = vocab});
  }
  StepTensors rows = tile.rows;
  BatchState batch = tile.step.batch;
  if (!sizes_.probabilistic && masks.ticket == nullptr) plain_.put(&rows, &batch);
  sample(queue, {.logits = logits,
                 .tensors = rows,
                 .batch = batch,
                 .row_offset = tile.offset,
                 .max_rows = tile.max_rows,
                 .vocab = vocab});
  if (tile.alternatives != nullptr) find_alternatives(queue, logits, vocab, tile);
}

void DraftOutput::find_alternatives(Queue& queue, const float* logits, int32_t vocab,
                                    const Tile& tile) {
  draft_alternatives(queue, {.logits = logits,
                             .counts = tile.rows.counts,
                             .sampled = tile.rows.sampled,
                             .out = tile.alternatives,
                             .row_offset = tile.offset,
                             .max_rows = tile.max_rows,
                             .vocab = vocab});
}

}  // namespace foretoken
