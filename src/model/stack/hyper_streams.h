#pragma once
#include <cstdint>
#include <string>

#include "kernels/rows/fold_streams.h"
#include "model/layer/layer_rows.h"
#include "model/layer/part_loader.h"
#include "model/layer/stage_cut.h"

namespace foretoken {

// By what a part of a layer reads the streams and gives to them, as of FoldStreamsArgs.
struct HyperConnection {
  const float* fn = nullptr;  // null: there is one stream
  const float* base = nullptr;
  const float* scale = nullptr;

  bool exists() const { return fn != nullptr; }
  // `name`: what stands before "fn", "base" and "scale". Errors as of WeightLoader.
  Status load(PartLoader& loader, const std::string& name, StreamWeights learned);
  // One by which each stream enters with an equal share.
  Status make_mean(PartLoader& loader);
};

// The streams of hidden states that each part of a layer reads as one and gives its output to
// (manifold-constrained hyper-connections, Xie et al. 2026; DeepSeek V4). What a part reads lies in
// the residual of the layers while it runs.
class HyperStreams {
 public:
  // Loads the last connection, whose names begin with `body`, whole on every rank; nothing where
  // the model has one stream.
  Status load(PartLoader& loader, const std::string& body);
  Status take_scratch(const ScratchSource& source);
  bool empty() const { return !config_.exist(); }
  float* rows() const { return streams_; }  // [max_rows, streams, hidden]

  // Each enqueues, for the live rows; residual and made [max_rows, hidden].
  // Every stream becomes what enters the first layer;
  void expand(const LayerRows& rows, const float* residual);
  // what a part reads becomes the residual;
  void fold(const LayerRows& rows, const HyperConnection& part, float* residual);
  // the streams get what the part that read them last made;
  void spread(const LayerRows& rows, const float* made);
  // what the last norm reads becomes the residual;
  void collapse(const LayerRows& rows, float* residual);
  // all streams go over the cut.
  void cross(const LayerRows& rows, const StageCut& cut);

  // Numbers in the weights of `collapse`.
  static double num_weights(const ModelConfig& config);

 private:
  HyperConfig config_;
  HyperConnection last_;
  int32_t hidden_ = 0;
  float norm_eps_ = 0;
  float* streams_ = nullptr;  // as of rows()
  float* weights_ = nullptr;  // [max_rows, streams + streams^2]
};

}  // namespace foretoken
