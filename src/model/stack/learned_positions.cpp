#include "model/stack/learned_positions.h"

#include "kernels/rows/embed.h"
#include "model/layer/norm.h"

namespace foretoken {

Status LearnedPositions::load(PartLoader& loader, Arena& arena, const std::string& name,
                              bool is_own) {
  const ModelConfig& config = loader.config();
  if (config.learned_positions == 0) return {};
  if (!is_own) {
    const int64_t shape[] = {config.learned_positions, config.embedding_width()};
    return loader.weights().expect(name + ".weight", shape);
  }
  hidden_ = config.embedding_width();
  eps_ = config.rms_norm_eps;
  dtype_ = config.dtype;
  num_positions_ = config.learned_positions - config.first_position_row;
  FT_ASSIGN_OR_RETURN(
      table_, loader.weights().table(arena, name + ".weight", config.learned_positions, hidden_));
  table_.data = static_cast<const std::byte*>(table_.data) +
                table_.num_bytes(config.first_position_row, hidden_);
  return {};
}

Status LearnedPositions::take_scratch(const ScratchSource& source) {
  if (empty()) return {};
  FT_ASSIGN_OR_RETURN(looked_up_, source.floats(hidden_));
  return {};
}

void LearnedPositions::add(const LayerRows& rows, float* residual) const {
  embed(rows.queue, {.counts = rows.counts,
                     .token_ids = rows.positions,
                     .table = table_,
                     .out = looked_up_,
                     .max_rows = rows.max_rows,
                     .vocab = num_positions_,
                     .hidden = hidden_,
                     .dtype = dtype_});
  // The sum stays in the residual; what leaves the norm without weights is not read.
  norm_rows(rows, residual, looked_up_, {}, {hidden_, eps_}, {looked_up_, DType::kF32});
}

double LearnedPositions::num_weights(const ModelConfig& config) {
  return double(config.learned_positions) * config.embedding_width();
}

}  // namespace foretoken
