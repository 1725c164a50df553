#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "model/layer/layer_rows.h"
#include "model/layer/linear.h"
#include "model/layer/norm.h"
#include "model/layer/part_loader.h"
#include "model/layer/stage_cut.h"
#include "model/weights/stages.h"

namespace foretoken {

// How a layer takes in its own embedding of a token: out = projection(activation(gate x) * own).
struct LayerInput {
  int32_t index = 0;  // of the layer
  Linear gate;        // [size, hidden]; without outputs: the layer takes none
  Linear projection;  // [hidden, size]
  Norm post_norm;     // of what is added

  bool exists() const { return gate.outputs > 0; }
  // `base` as of load_layer.
  Status load(PartLoader& loader, const std::string& base, int32_t size);
};

// Embeddings of tokens for each layer (Gemma 4): those of a table, and what a projection makes of
// the embedding that enters the first layer, normed; the mean of both times sqrt(2).
// Copies have the same weights.
class LayerInputs {
 public:
  // Loads what begins with `body`, for example "model.", for passes of max_rows; the table is whole
  // on every rank of the first stage, and others look for it alone. Nothing where layers have no
  // inputs. Errors as of WeightLoader.
  Status load(PartLoader& loader, Arena& arena, const std::string& body, int32_t max_rows,
              const Stages& stages = {});
  Status take_scratch(const ScratchSource& source);
  bool empty() const { return num_layers_ == 0; }

  // Enqueues the embeddings of the live rows; `residual` is what enters the first layer. Of the
  // first stage.
  void make(const LayerRows& rows, const int32_t* token_ids, float* residual);
  // Enqueues to = projection(activation(gate x) * embedding of the layer), x [max_rows, hidden]
  // act.
  void mix(const LayerRows& rows, const LayerInput& layer, const void* x, float* to) const;
  // Enqueues that the embeddings for layers behind the cut go over it.
  void cross(const LayerRows& rows, const StageCut& cut);

  // Numbers in the weights.
  static double num_weights(const ModelConfig& config);

 private:
  int32_t width() const { return num_layers_ * size_; }

  Status load_weights(PartLoader& loader, Arena& arena, const std::string& body);
  Status expect_weights(PartLoader& loader, const std::string& body) const;

  int32_t first_ = 0;       // of the stage's layers
  int32_t num_layers_ = 0;  // from that one on
  int32_t size_ = 0;
  int32_t vocab_ = 0;
  int32_t hidden_ = 0;
  float eps_ = 0;
  DType dtype_ = DType::kF32;
  Activation activation_ = Activation::kGeluTanh;
  LookUpTable table_;  // [vocab, layers * size]
  // [layers * size, hidden], which copies have in common; null on stages that make nothing.
  std::shared_ptr<Linear> projection_;
  const float* norm_ = nullptr;       // [layers, size], the same for each layer
  const int32_t* rows_of_ = nullptr;  // [layers, max_rows] row * layers + layer
  int32_t max_rows_ = 0;
  void* entering_ = nullptr;    // [max_rows, hidden] act
  float* made_ = nullptr;       // [max_rows, layers * size]
  float* looked_up_ = nullptr;  // the same, from the table
  float* gated_ = nullptr;      // [max_rows, size]
  float* pair_ = nullptr;       // [max_rows, 2 * size]
  void* mixed_ = nullptr;       // [max_rows, size] act
};

}  // namespace foretoken
