#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/norm.h"
#include "model/layer/part_loader.h"
#include "model/layer/stage_cut.h"

namespace foretoken {

// DepthSpec with its weights: each query times the weights of its norm [hidden].
struct DepthMixer {
  const float* mixer = nullptr;
  const float* feed_forward = nullptr;
  int32_t blocks = 0;
  bool begins_block = false;

  bool exists() const { return mixer != nullptr; }
  // Behind the layer's mixer.
  int32_t blocks_behind() const { return blocks + (begins_block ? 1 : 0); }
  // `base` as of load_layer. Errors as of WeightLoader.
  Status load(PartLoader& loader, const std::string& base, const DepthSpec& spec);
};

// What entered each block of layers, in device memory, and how parts read it: the residual of
// layers with a DepthSpec is what the current block has added alone. One for each set of rows that
// run through layers at the same time.
class DepthResiduals {
 public:
  // Loads the query of what the last norm reads, whose names begin with `body`; nothing where
  // layers have no DepthSpec. Errors as of WeightLoader.
  Status load(PartLoader& loader, const std::string& body);
  // Errors as of Arena.
  Status take_scratch(const ScratchSource& source);
  bool empty() const { return num_blocks_ == 0; }

  // Each enqueues, for the live rows; residual and delta [max_rows, hidden], delta or null.
  // residual += delta; what the query reads of `blocks` blocks and the residual, until the next
  // call. Without blocks it is the residual.
  float* mix(const LayerRows& rows, const float* query, int32_t blocks, float* residual,
             const float* delta);
  // Keeps the residual as block `block`; it becomes 0.
  void keep(const LayerRows& rows, int32_t block, float* residual);
  // residual += delta, then what the last norm reads takes its place.
  void leave(const LayerRows& rows, float* residual, const float* delta);
  // What entered the blocks before the cut goes over it.
  void cross(const LayerRows& rows, const StageCut& cut);

  // Numbers in the weights outside of layers.
  static double num_weights(const ModelConfig& config);

 private:
  void run(const LayerRows& rows, const float* query, int32_t blocks, float* residual,
           const float* delta, float* out);

  float* block(int32_t index) const { return blocks_ + int64_t{index} * max_rows_ * size_.hidden; }

  int32_t num_blocks_ = 0;
  int32_t max_rows_ = 0;
  NormSize size_{};
  const float* query_ = nullptr;  // of what the last norm reads
  float* blocks_ = nullptr;       // [blocks, max_rows, hidden]
  float* mixed_ = nullptr;        // [max_rows, hidden]
  float* zeros_ = nullptr;        // [hidden]
  int32_t* first_ = nullptr;      // [max_rows] row 0 of these, for each row
};

}  // namespace foretoken
