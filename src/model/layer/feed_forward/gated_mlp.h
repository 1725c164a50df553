#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/linear.h"
#include "model/layer/norm.h"
#include "model/layer/part_loader.h"
#include "model/layer/rank_rows.h"

namespace foretoken {

// A gated MLP with its weights, or a rank's part of it.
struct GatedMlp {
  GatedMlpSpec spec;  // of the part
  DType dtype = DType::kF32;
  float eps = 0;        // of sub_norm
  Linear gate_up;       // [2 * inner, hidden] as kGateUp, or plainly where they are looked at apart
  Linear down;          // [hidden, inner]
  Norm sub_norm;        // of what enters down; without weights: there is none
  NormedPart met_part;  // the rank's columns of it
  float deviations = 0;  // as of CutLowArgs, where spec.sparsity asks for that

  // Buffers that layers share, wide enough for the widest of them.
  struct Scratch {
    void* gated = nullptr;   // [max_rows, inner] act
    float* apart = nullptr;  // [max_rows, 2 * inner]: gates, then ups
    float* met = nullptr;    // [max_rows, inner] before sub_norm

    // Makes room for a layer; before `take`.
    void fit(const GatedMlpSpec& part);
    Status take(const ScratchSource& source);

   private:
    int32_t inner_ = 0;
    bool apart_ = false;
    bool normed_ = false;
  };

  // Loads what begins with `base`, for example "model.layers.3.", and the base of the spec. Stays
  // until the loader has finished or stopped. Errors as of WeightLoader.
  Status load(PartLoader& loader, const std::string& base, const GatedMlpSpec& whole);

  // Calls f for each matrix that adapters may change.
  template <class F>
  void for_each_linear(const F& f) {
    f(gate_up);
    f(down);
  }

  // Whether it is two products: gates and ups, which meet where they arise, and down.
  bool is_two_products() const { return !spec.apart(); }
  // Enqueues activation(gate) * up of x [max_rows, hidden] act;
  void expand(const LayerRows& rows, const void* x, const Scratch& scratch) const;
  // then what is added to the residual.
  void output(const LayerRows& rows, const Scratch& scratch, Sum to) const {
    multiply(rows, scratch.gated, down, to, dtype);
  }

 private:
  void cut_gates(const LayerRows& rows, const Scratch& scratch) const;
  void expand_apart(const LayerRows& rows, const void* x, const Scratch& scratch) const;
};

}  // namespace foretoken
