#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "device/arena.h"
#include "model/layer/layer_rows.h"
#include "model/layer/part_loader.h"
#include "model/layer/stage_cut.h"
#include "model/stack/depth_residuals.h"
#include "model/stack/hyper_streams.h"
#include "model/stack/layer_inputs.h"
#include "model/stack/residual_streams.h"
#include "model/weights/stages.h"

namespace foretoken {

// What rows have beside the residual while they go through the layers of a model: their own
// embeddings for each layer, streams, what entered earlier blocks of layers. One for each set of
// rows that run through layers at the same time; copies have the same weights until take_scratch.
struct CarriedRows {
  LayerInputs inputs;
  ResidualStreams streams;
  HyperStreams hyper;
  DepthResiduals depth;

  // Loads what begins with `body`, for example "model.", and what the stage lacks is looked for;
  // for passes of max_rows. Nothing of what the model does not have. Errors as of WeightLoader.
  Status load(PartLoader& loader, Arena& arena, const std::string& body, int32_t max_rows,
              const Stages& stages);
  // Errors as of Arena.
  Status take_scratch(const ScratchSource& source);

  // Whether embeddings enter the first layer as they are.
  bool empty() const { return inputs.empty() && streams.empty() && hyper.empty(); }
  // Whether layers find the residual in one of the streams.
  bool hold_residual() const { return !streams.empty() || !hyper.empty(); }

  // Each enqueues, for the live rows; residual and delta [max_rows, hidden], delta or null.
  // What becomes of embeddings, which are the residual, before the first layer;
  void begin(const LayerRows& rows, float* residual);
  // what the last norm reads becomes the residual, which lacks `delta`; true: that is added.
  bool end(const LayerRows& rows, float* residual, const float* delta);
  // The residual and all of these go over the cut, as far as layers behind it read them.
  void cross(const LayerRows& rows, const StageCut& cut, float* residual, int32_t hidden);
};

}  // namespace foretoken
