#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/linear.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// A gated short convolution with its weights, or a rank's part of it: of the channels.
struct ShortConv {
  ShortConvSpec spec;  // of the part
  DType dtype = DType::kF32;
  Linear in;                       // [B, C and x of the channels, spec.inputs]
  const float* weights = nullptr;  // [channels, width]
  const float* bias = nullptr;     // [channels] or null
  Linear out;                      // [hidden, channels]

  // Buffers that layers share, wide enough for the widest of them.
  struct Scratch {
    float* projected = nullptr;  // [max_rows, 3 * channels]
    void* mixed = nullptr;       // [max_rows, channels] act

    // Makes room for a layer; before `take`.
    void fit(const ShortConvSpec& part);
    Status take(const ScratchSource& source);

   private:
    int32_t channels_ = 0;
  };

  // Loads what begins with `layer`, for example "model.layers.3.", and the base of the spec. Stays
  // until the loader has finished or stopped. Errors as of WeightLoader.
  Status load(PartLoader& loader, const std::string& layer, const ShortConvSpec& whole);

  // Calls f for each matrix that adapters may change.
  template <class F>
  void for_each_linear(const F& f) {
    f(in);
    f(out);
  }

  // Enqueues B, C and x of rows [max_rows, spec.inputs] act;
  void project(const LayerRows& rows, const void* x, const Scratch& scratch) const;
  // then C * conv(B * x), with what the sequences have before in the layer's state;
  void attend(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const;
  // then what is added to the residual.
  void output(const LayerRows& rows, const Scratch& scratch, Sum to) const {
    multiply(rows, scratch.mixed, out, to, dtype);
  }
};

}  // namespace foretoken
