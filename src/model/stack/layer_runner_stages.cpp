#include "model/stack/layer_runner.h"

// What goes from stage to stage.

namespace foretoken {

void LayerRunner::cross_residual(const LayerRows& rows, const StageCut& cut) {
  cut.cross(rows, residual_, config_.hidden_size);
}

// Whoever sends goes through the same rows as whoever receives.
void LayerRunner::cross(const LayerRows& rows, const StageCut& cut) {
  carried_->cross(rows, cut, residual_, config_.hidden_size);
  if (cut.behind.shares_index) latent_.index.cross(rows, cut);
  if (wkv_.first_values != nullptr) cut.cross(rows, wkv_.first_values, wkv_.values_size());
  if (shared_.exists()) SharedBlock::cross(rows, cut, config_.hidden_size, shared_);
}

}  // namespace foretoken
