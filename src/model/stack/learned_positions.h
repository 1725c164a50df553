#pragma once
#include <cstdint>
#include <string>

#include "model/layer/layer_rows.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// Positions as a table of vectors that are added to the embeddings of tokens (GPT-2, OPT).
class LearnedPositions {
 public:
  // Loads the table `name` (without ".weight"), whole on every rank, or where another stage has it
  // only asks for it; nothing where the model has none. Errors as of WeightLoader.
  Status load(PartLoader& loader, Arena& arena, const std::string& name, bool is_own = true);
  Status take_scratch(const ScratchSource& source);
  bool empty() const { return !table_.exists(); }

  // Enqueues residual += those of the live rows' positions; residual [max_rows, hidden].
  void add(const LayerRows& rows, float* residual) const;

  // Numbers in the weights.
  static double num_weights(const ModelConfig& config);

 private:
  RowTable table_;  // [positions, hidden], from position 0 on
  int32_t num_positions_ = 0;
  int32_t hidden_ = 0;
  float eps_ = 0;
  DType dtype_ = DType::kF32;
  float* looked_up_ = nullptr;  // [max_rows, hidden]
};

}  // namespace foretoken
