#pragma once
#include <string>

#include "model/layer/linear.h"
#include "model/layer/norm.h"
#include "model/layer/part_loader.h"
#include "model/stack/learned_positions.h"

namespace foretoken {

// What rows of the embedding's table become before the first layer: those of positions are added,
// and rows narrower than the layers are normed and multiplied by a matrix (ALBERT, ELECTRA).
class EmbeddedRows {
 public:
  // Loads the table `positions` and "<body>embed_proj", which has a bias, as far as the model has
  // them; is_own: as of LearnedPositions. Errors as of WeightLoader.
  Status load(PartLoader& loader, Arena& arena, const std::string& body,
              const std::string& positions, bool is_own);
  Status take_scratch(const ScratchSource& source);
  // Rows of the table are the residual as they are.
  bool empty() const { return positions_.empty() && !is_narrow(); }

  // Where the table's rows belong, [max_rows, ModelConfig::embedding_width()].
  float* table_rows(float* residual) const { return is_narrow() ? rows_ : residual; }
  // Enqueues the rest, of the live rows; true: rows are normed, too.
  bool finish(const LayerRows& rows, const Norm& norm, float* residual) const;

  // Numbers in the weights.
  static double num_weights(const ModelConfig& config);

 private:
  bool is_narrow() const { return width_ > 0; }

  LearnedPositions positions_;
  Linear widening_;  // [hidden, width]
  int32_t width_ = 0;
  float eps_ = 0;
  DType dtype_ = DType::kF32;
  float* rows_ = nullptr;   // [max_rows, width]
  void* normed_ = nullptr;  // [max_rows, width] act
};

}  // namespace foretoken
