#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/layer/layer_rows.h"
#include "model/layer/linear.h"
#include "model/layer/norm.h"
#include "model/layer/part_loader.h"
#include "model/layer/stage_cut.h"

namespace foretoken {

// How a layer moves the streams: what it finds in the active one says how all are predicted before
// it and corrected behind it.
struct StreamMixer {
  Norm router_norm;
  Linear router;                   // [streams, hidden]; without outputs: there is one stream
  const float* predict = nullptr;  // as of MixStreamsArgs
  const float* correct = nullptr;
  const float* scale = nullptr;  // [hidden] or null

  bool exists() const { return router.outputs > 0; }
  // `base` as of load_layer.
  Status load(PartLoader& loader, const std::string& base, const StreamConfig& streams);
};

// Streams of hidden states of which each layer works on one (AltUp, Baykal et al. 2023; Gemma 3n):
// the residual of the layers is that one. Copies have the same weights.
class ResidualStreams {
 public:
  // Loads what begins with `body`, for example "model.", whole on every rank; nothing where
  // the model has one stream. Errors as of WeightLoader.
  Status load(PartLoader& loader, const std::string& body);
  Status take_scratch(const ScratchSource& source);
  bool empty() const { return config_.count < 2; }

  // Each enqueues, for the live rows; residual [max_rows, hidden].
  // The streams of what enters the first layer;
  void expand(const LayerRows& rows, float* residual);
  // all streams as the layer will leave them, of which the active one becomes the residual;
  void predict(const LayerRows& rows, const StreamMixer& layer, float* residual);
  // the same corrected by what the layer made of the residual, which becomes the active one,
  // scaled;
  void correct(const LayerRows& rows, const StreamMixer& layer, float* residual);
  // delta [max_rows, hidden] added to all but the first;
  void add(const LayerRows& rows, const float* delta);
  // the mean of all, in the residual.
  void collapse(const LayerRows& rows, float* residual);
  // all streams go over the cut.
  void cross(const LayerRows& rows, const StageCut& cut);

  // Numbers in the weights.
  static double num_weights(const ModelConfig& config);

 private:
  TensorPart matrix_of(const WeightLoader& loader, const std::string& name, size_t index) const;
  float* stream(int32_t index) const {
    return streams_ + int64_t{index} * max_rows_ * size_.hidden;
  }
  void route(const LayerRows& rows, const StreamMixer& layer, float* active);
  void mix(const LayerRows& rows, const StreamMixer& layer, const float* activated,
           float* residual);
  void put(const LayerRows& rows, float* from, NormOutput to) const {
    norm_rows(rows, from, nullptr, {}, size_, to);
  }

  StreamConfig config_;
  NormSize size_{};
  DType dtype_ = DType::kF32;
  int32_t max_rows_ = 0;
  // [hidden, hidden], of streams from 1 on; what copies have in common.
  struct Ways {
    std::vector<Linear> in;
    std::vector<Linear> out;
  };
  std::shared_ptr<Ways> ways_;
  float* streams_ = nullptr;  // [streams, max_rows, hidden]
  float* routed_ = nullptr;   // [max_rows, streams]
  float* made_ = nullptr;     // [max_rows, hidden]
  void* act_ = nullptr;       // [max_rows, hidden] act
};

}  // namespace foretoken
