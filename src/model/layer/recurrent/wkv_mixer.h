#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "kernels/activation.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/linear.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// The time mixing of RWKV 7 with its weights, or a rank's part of its heads.
struct WkvMixer {
  // A product of low rank: high(activation(low x)).
  struct Factors {
    Linear low;   // [rank, spec.inputs], whole on every rank, exact; and so is the next
    Linear high;  // [v_size, rank]
  };

  WkvSpec spec;  // of the part
  DType dtype = DType::kF32;
  const float* mixes = nullptr;       // [kNumMixes, spec.inputs]
  const float* key_scale = nullptr;   // [v_size], as of WkvInputsArgs, and so is the next
  const float* rate_scale = nullptr;  // [v_size]
  const float* bonus = nullptr;       // [v_size], as of WkvOutputArgs, and so are the next
  const float* norm = nullptr;
  const float* norm_bias = nullptr;
  Linear queries;  // [v_size, spec.inputs], and so are the next
  Linear keys;
  Linear values;
  Factors decays;
  Factors rates;
  Factors shares;  // without outputs in the first layer
  Factors gates;
  Linear out;  // [hidden, v_size]

  // Buffers that layers share, wide enough for the widest of them.
  struct Scratch {
    void* x = nullptr;         // [max_rows, inputs] act
    void* mixed = nullptr;     // [kNumMixes, max_rows, inputs] act
    float* low = nullptr;      // [max_rows, widest rank]
    void* low_act = nullptr;   // the same, act
    float* queries = nullptr;  // [max_rows, v_size], and so are the next
    float* keys = nullptr;
    float* values = nullptr;
    float* decays = nullptr;
    float* rates = nullptr;
    float* shares = nullptr;
    float* gates = nullptr;
    float* first_values = nullptr;  // of the first layer, which all others read
    float* packed = nullptr;        // [max_rows, shape.row_size()]
    float* left = nullptr;          // [max_rows, v_size]
    void* gated = nullptr;          // [max_rows, v_size] act

    // Makes room for a layer; before `take`.
    void fit(const WkvSpec& part);
    Status take(const ScratchSource& source);
    int32_t values_size() const { return v_size_; }

   private:
    int32_t inputs_ = 0;
    int32_t rank_ = 0;
    int32_t row_size_ = 0;
    int32_t v_size_ = 0;
  };

  // Loads what begins with `layer`, for example "model.layers.3.", and the base of the spec. Stays
  // until the loader has finished or stopped. Errors as of WeightLoader.
  Status load(PartLoader& loader, const std::string& layer, const WkvSpec& whole);

  // Calls f for each matrix that adapters may change.
  template <class F>
  void for_each_linear(const F& f) {
    for (Linear* linear : {&queries, &keys, &values}) f(*linear);
    for (Factors* factors : {&decays, &rates, &shares, &gates}) {
      if (factors->low.outputs == 0) continue;
      f(factors->low);
      f(factors->high);
    }
    f(out);
  }

  // Keeps x [max_rows, spec.inputs] act, as all that is made of it wants the rows before;
  void project(const LayerRows& rows, const void* x, const Scratch& scratch) const;
  // then what looks at these, by the layer's state;
  void attend(const LayerRows& rows, const LayerKv& kv, const Scratch& scratch) const;
  // then what is added to the residual.
  void output(const LayerRows& rows, const Scratch& scratch, Sum to) const {
    multiply(rows, scratch.gated, out, to, dtype);
  }

 private:
  Status load_vectors(PartLoader& loader, const std::string& base, const WkvSpec& whole);
  void shift(const LayerRows& rows, const LayerState& state, const Scratch& scratch) const;
  void make(const LayerRows& rows, const Scratch& scratch) const;
  void pack(const LayerRows& rows, const Scratch& scratch) const;
};

}  // namespace foretoken
