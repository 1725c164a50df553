#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/linear.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// A gated MLP with its weights, or a rank's part of it.
struct GatedMlp {
  GatedMlpSpec spec;  // of the part
  DType dtype = DType::kF32;
  Linear gate_up;  // [2 * inner, hidden] as kGateUp
  Linear down;     // [hidden, inner]

  // Buffers that layers share, wide enough for the widest of them.
  struct Scratch {
    void* gated = nullptr;  // [max_rows, inner] act

    // Makes room for a layer; before `take`.
    void fit(const GatedMlpSpec& part);
    Status take(const ScratchSource& source);

   private:
    int32_t inner_ = 0;
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

  // Enqueues activation(gate) * up of x [max_rows, hidden] act;
  void expand(const LayerRows& rows, const void* x, const Scratch& scratch) const;
  // then what is added to the residual.
  void output(const LayerRows& rows, const Scratch& scratch, Sum to) const {
    multiply(rows, scratch.gated, down, to, dtype);
  }
};

}  // namespace foretoken
