#include "model/heads/chain_head.h"

#include "base/check.h"
#include "kernels/comm/context_exchange.h"
#include "kernels/rows/move_rows.h"

namespace foretoken {

Status TapReader::take_scratch(Arena& arena, int32_t max_rows) {
  if (!ranks_.are_several()) return {};
  const ModelConfig& config = target_.config();
  const auto row_bytes = static_cast<size_t>(config.hidden_size) * dtype_size(config.dtype);
  FT_ASSIGN_OR_RETURN(joined_, arena.take(static_cast<size_t>(max_rows) * row_bytes,
                                          "the draft head's scratch (lower --max-num-seqs)"));
  return {};
}

void TapReader::read(Queue& queue, const DraftTensors& tensors, const DraftHead::Source& taps,
                     int32_t max_rows, void* out, DType dtype) const {
  FT_CHECK(taps.rows != nullptr && taps.tapped && tensors.source != nullptr);
  const int32_t hidden = target_.config().hidden_size;
  const void* in = taps.rows;
  const int32_t* from = tensors.source;
  if (taps.are_parts) {
    FT_CHECK(joined_ != nullptr);
    const int32_t part = hidden / ranks_.size;
    gather_parts(queue, {.counts = tensors.rows.counts,
                         .in = in,
                         .from = from,
                         .out = joined_,
                         .ranks = ranks_,
                         .max_rows = max_rows,
                         .pieces = 1,
                         .piece_bytes = part * static_cast<int32_t>(dtype_size(taps.dtype))});
    in = joined_;
    from = nullptr;
  }
  move_rows(queue, {.counts = tensors.rows.counts,
                    .in = in,
                    .out = out,
                    .from = from,
                    .to = nullptr,
                    .row_kind = RowKind::kToken,
                    .max_rows = max_rows,
                    .width = hidden,
                    .out_stride = hidden,
                    .out_offset = 0,
                    .in_dtype = taps.dtype,
                    .out_dtype = dtype});
}

}  // namespace foretoken
