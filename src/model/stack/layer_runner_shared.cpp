#include "model/layer/norm.h"
#include "model/stack/layer_runner.h"

// Layers before whose recurrent mixer stands a block that several layers have in common
// (SharedSpec).

namespace foretoken {

void LayerRunner::keep_embeddings(const LayerRows& rows) {
  if (!shared_.exists()) return;
  SharedBlock::keep_embeddings(rows, residual_, config_.hidden_size, shared_);
}

// residual += delta; then what the block's attention reads.
void LayerRunner::enter_shared(const LayerRows& rows, const float* delta,
                               const DecoderLayer& layer) {
  if (delta != nullptr) add_and_norm(rows, delta, {});
  layer.shared.widen(rows, residual_, norm_size(), shared_, config_.dtype);
}

void LayerRunner::project_shared(const LayerRows& rows, const DecoderLayer& layer) {
  std::get<Gqa>(layer.mixer).project(rows, shared_.wide, gqa_);
  layer.shared.adapt_attention(rows, gqa_.qkv, shared_, config_.dtype);
}

// What the block makes of the row meets the residual in what the recurrent mixer reads, and
// nowhere else.
const float* LayerRunner::run_shared(const LayerRows& rows, const LayerKv& kv,
                                     const DecoderLayer& layer, const DecoderLayer* next) {
  const Gqa& attention = std::get<Gqa>(layer.mixer);
  const SharedBlock& block = layer.shared;
  const NormOutput act{normed_, config_.dtype};
  attention.attend(rows, kv, gqa_);
  attention.output(rows, gqa_, {delta_});
  if (sharding_.is_cut()) sum_over_ranks(rows);
  norm_rows(rows, delta_, nullptr, block.mlp_norm, norm_size(), act);
  block.run_mlp(rows, normed_, delta_, shared_, config_.dtype);
  if (sharding_.is_cut()) sum_over_ranks(rows);
  cast_rows(rows, {delta_, DType::kF32, normed_, config_.dtype, config_.hidden_size});
  multiply(rows, normed_, block.out, {delta_}, config_.dtype);
  cast_rows(rows, {residual_, DType::kF32, shared_.sum, DType::kF32, config_.hidden_size});
  norm_rows(rows, shared_.sum, delta_, block.side_norm, norm_size(), act);
  const LinearMixer& side = *layer.side;
  side.project(rows, normed_, linear_);
  side.attend(rows, kv, linear_);
  side.output(rows, linear_, {delta_});
  if (sharding_.is_cut()) sum_over_ranks(rows);
  if (next == nullptr) return delta_;
  enter(rows, delta_, *next);
  project(rows, *next, normed_);
  return nullptr;
}

}  // namespace foretoken
