#include "model/layer/row_gate.h"

#include <algorithm>

#include "kernels/attention/gate_heads.h"
#include "kernels/gemm/activate.h"

namespace foretoken {

Status RowGate::load(PartLoader& loader, const std::string& layer, const RowGateSpec& spec) {
  if (spec.rank == 0) return {};
  const std::string base = layer + spec.base;
  const int32_t hidden = loader.config().hidden_size;
  FT_RETURN_IF_ERROR(loader.load_linear({{base + spec.down, spec.rank}}, hidden, false, &down));
  return loader.load_linear({{base + spec.up, hidden}}, spec.rank, false, &up);
}

void RowGate::Scratch::fit(const RowGate& gate) {
  rank_ = std::max(rank_, gate.down.outputs);
  hidden_ = std::max(hidden_, gate.up.outputs);
}

Status RowGate::Scratch::take(const ScratchSource& source) {
  if (rank_ == 0) return {};
  FT_ASSIGN_OR_RETURN(low, source.floats(rank_));
  FT_ASSIGN_OR_RETURN(act, source.act(rank_));
  FT_ASSIGN_OR_RETURN(gates, source.floats(hidden_));
  return {};
}

void RowGate::apply(const LayerRows& rows, void* x, const Scratch& scratch, DType dtype) const {
  if (!exists()) return;
  multiply(rows, x, down, {scratch.low}, dtype);
  activate(rows.queue, {.counts = rows.counts,
                        .x = scratch.low,
                        .out = scratch.act,
                        .max_rows = rows.max_rows,
                        .size = down.outputs,
                        .activation = Activation::kSilu,
                        .out_dtype = dtype});
  multiply(rows, scratch.act, up, {scratch.gates}, dtype);
  gate_heads(rows.queue, {.counts = rows.counts,
                          .x = x,
                          .gates = scratch.gates,
                          .max_rows = rows.max_rows,
                          .num_heads = 1,
                          .head_dim = up.outputs,
                          .each_element = 1,
                          .gate = HeadGate::kSigmoid,
                          .dtype = dtype});
}

}  // namespace foretoken
