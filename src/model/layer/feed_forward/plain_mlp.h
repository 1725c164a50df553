#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/linear.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// An MLP without a gate, with its weights, or a rank's part of it.
struct PlainMlp {
  PlainMlpSpec spec;  // of the part
  DType dtype = DType::kF32;
  Linear up;                          // [inner, hidden]
  Linear down;                        // [hidden, inner]
  const float* parameters = nullptr;  // of the activation, as of ActivateArgs

  // Buffers that layers share, wide enough for the widest of them.
  struct Scratch {
    float* expanded = nullptr;  // [max_rows, inner]
    void* active = nullptr;     // [max_rows, inner] act

    // Makes room for a layer; before `take`.
    void fit(const PlainMlpSpec& part);
    Status take(const ScratchSource& source);

   private:
    int32_t inner_ = 0;
  };

  // Loads what begins with `layer`, for example "model.layers.3.", and the base of the spec. Stays
  // until the loader has finished or stopped. Errors as of WeightLoader.
  Status load(PartLoader& loader, const std::string& layer, const PlainMlpSpec& whole);

  // Calls f for each matrix that adapters may change.
  template <class F>
  void for_each_linear(const F& f) {
    f(up);
    f(down);
  }

  // Enqueues the activation of up x, x [max_rows, hidden] act;
  void expand(const LayerRows& rows, const void* x, const Scratch& scratch) const;
  // then what is added to the residual.
  void output(const LayerRows& rows, const Scratch& scratch, Sum to) const {
    multiply(rows, scratch.active, down, to, dtype);
  }
};

}  // namespace foretoken
