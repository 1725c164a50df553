#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/linear.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// The mixer of Mamba 1 with its weights, or a rank's part of its channels.
struct SelectiveMixer {
  SelectiveSpec spec;  // of the part
  DType dtype = DType::kF32;
  float eps = 0;                     // of the norms
  Linear in;                         // [x and gates of the channels, spec.inputs]
  const float* conv = nullptr;       // [channels, conv_width]
  const float* conv_bias = nullptr;  // [channels] or null
  Linear low;                        // [step_rank, channels], exact
  Linear maps;                       // [keys | queries, channels], exact
  const float* low_norm = nullptr;   // [step_rank], or null: there is none
  const float* maps_norm = nullptr;  // [2 * d_state], the same
  Linear steps;                      // [channels, step_rank], exact
  const float* rates = nullptr;      // [d_state, channels]
  const float* skip = nullptr;       // [channels]
  Linear out;                        // [hidden, channels]

  // Buffers that layers share, wide enough for the widest of them.
  struct Scratch {
    float* first = nullptr;     // [max_rows, 2 * channels]
    float* mixed = nullptr;     // [max_rows, channels] behind the convolution
    void* mixed_act = nullptr;  // the same, act
    float* low = nullptr;       // [max_rows, step_rank]
    void* low_act = nullptr;    // the same, normed, act
    float* maps = nullptr;      // [max_rows, 2 * d_state]
    float* normed = nullptr;    // the same, normed
    float* steps = nullptr;     // [max_rows, channels]
    float* left = nullptr;      // [max_rows, channels] of the scan
    void* gated = nullptr;      // the same behind its gates, act

    // Makes room for a layer; before `take`.
    void fit(const SelectiveSpec& part);
    Status take(const ScratchSource& source);

   private:
    int32_t channels_ = 0;
    int32_t d_state_ = 0;
    int32_t step_rank_ = 0;
  };

  // Loads what begins with `layer`, for example "model.layers.3.", and the base of the spec. Stays
  // until the loader has finished or stopped. Errors as of WeightLoader.
  Status load(PartLoader& loader, const std::string& layer, const SelectiveSpec& whole);

  // Calls f for each matrix that adapters may change.
  template <class F>
  void for_each_linear(const F& f) {
    f(in);
    f(low);
    f(maps);
    f(steps);
    f(out);
  }

  // Enqueues the first product of x [max_rows, spec.inputs] act;
  void project(const LayerRows& rows, const void* x, const Scratch& scratch) const {
    multiply(rows, x, in, {scratch.first}, dtype);
  }
  // then what looks at the rows before, by the layer's state, and its gates;
  void attend(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const;
  // then what is added to the residual.
  void output(const LayerRows& rows, const Scratch& scratch, Sum to) const {
    multiply(rows, scratch.gated, out, to, dtype);
  }

 private:
  Status load_maps(PartLoader& loader, const std::string& base, const SelectiveSpec& whole);
  Status load_norms(PartLoader& loader, const std::string& base);
  void convolve(const LayerRows& rows, const LayerState& state, const Scratch& scratch) const;
  void multiply_whole(const LayerRows& rows, const void* x, const Linear& linear, float* y) const;
  const float* make_maps(const LayerRows& rows, const Scratch& scratch) const;
};

}  // namespace foretoken
