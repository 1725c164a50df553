#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/linear.h"
#include "model/layer/part_loader.h"
#include "model/layer/rank_rows.h"

namespace foretoken {

// Linear attention with its weights, or a rank's part of its heads.
struct LinearMixer {
  LinearSpec spec;  // of the part
  DType dtype = DType::kF32;
  float eps = 0;  // of the norm
  Linear first;   // [queries | keys | values | gates of what leaves, spec.inputs]
  Linear steps;   // [decays | scales, spec.inputs], exact; without outputs: there are none
  // Of spec.decay_rank and gate_rank, where there are some: [decay_rank | gate_rank, inputs], then
  // [decays, decay_rank] and [v_size, gate_rank].
  Linear low;
  Linear low_decays;
  Linear low_gates;
  const float* conv = nullptr;        // [conv_channels, conv_width] or null
  const float* conv_bias = nullptr;   // [conv_channels] or null
  const float* rates = nullptr;       // as of LinearInputsArgs
  const float* decay_bias = nullptr;  // the same
  const float* skip = nullptr;        // [value_heads] or null
  const float* norm = nullptr;        // as of GatedNormArgs
  // Where ranks have parts of the norm's groups: how many all have, and the part of this rank.
  int32_t num_cut_groups = 0;
  NormedPart left_part = {};
  const float* q_norm = nullptr;  // [key_dim] or null, and so is the next
  const float* k_norm = nullptr;
  Linear out;  // [hidden, v_size]

  // Buffers that layers share, wide enough for the widest of them.
  struct Scratch {
    float* first = nullptr;  // [max_rows, first outputs]
    float* steps = nullptr;  // [max_rows, steps outputs], where a layer has some
    float* low = nullptr;    // [max_rows, low outputs], where a layer has some, and so are the next
    void* low_act = nullptr;  // [max_rows, decay_rank or gate_rank] act
    float* decays = nullptr;  // [max_rows, decays]
    float* gates = nullptr;   // [max_rows, v_size]
    float* mixed = nullptr;   // [max_rows, conv_channels] behind the convolution, if there is one
    float* packed = nullptr;  // [max_rows, shape.row_size()]
    float* left = nullptr;    // [max_rows, v_size]
    void* normed = nullptr;   // [max_rows, v_size] act

    // Makes room for a layer; before `take`.
    void fit(const LinearSpec& part);
    Status take(const ScratchSource& source);

   private:
    int32_t first_size_ = 0;
    int32_t steps_size_ = 0;
    int32_t low_size_ = 0;
    int32_t decay_size_ = 0;
    int32_t gate_size_ = 0;
    int32_t conv_size_ = 0;
    int32_t row_size_ = 0;
    int32_t v_size_ = 0;
  };

  // Loads what begins with `layer`, for example "model.layers.3.", and the base of the spec. Stays
  // until the loader has finished or stopped. Errors as of WeightLoader.
  Status load(PartLoader& loader, const std::string& layer, const LinearSpec& whole);

  // Calls f for each matrix that adapters may change.
  template <class F>
  void for_each_linear(const F& f) {
    f(first);
    if (has_steps()) f(steps);
    for (Linear* part : {&low, &low_decays, &low_gates}) {
      if (part->outputs > 0) f(*part);
    }
    f(out);
  }

  bool has_steps() const { return steps.outputs > 0; }
  // Enqueues the first products of x [max_rows, spec.inputs] act;
  void project(const LayerRows& rows, const void* x, const Scratch& scratch) const;
  // then what looks at the rows before, by the layer's state, and the norm of what it leaves;
  void attend(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const;
  // then what is added to the residual.
  void output(const LayerRows& rows, const Scratch& scratch, Sum to) const {
    multiply(rows, scratch.normed, out, to, dtype);
  }

 private:
  void project_low(const LayerRows& rows, const void* x, const Scratch& scratch) const;
  void convolve(const LayerRows& rows, const LayerState& state, const Scratch& scratch) const;
  void turn(const LayerRows& rows, const DeviceRope& rope, const Scratch& scratch) const;
  void gate_left(const LayerRows& rows, const Scratch& scratch) const;
  void norm_left(const LayerRows& rows, GatedNormArgs gating, const Scratch& scratch) const;
  void pack(const LayerRows& rows, const Scratch& scratch) const;
};

}  // namespace foretoken
