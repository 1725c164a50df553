#pragma once
#include <string>

#include "base/result.h"
#include "model/layer/layer_rows.h"
#include "model/layer/layer_spec.h"
#include "model/layer/linear.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// RowGateSpec with its weights, whole on every rank.
struct RowGate {
  Linear down;  // [rank, hidden]; without outputs: there is no gate
  Linear up;    // [hidden, rank]

  // Buffers that layers share, wide enough for the widest of them.
  struct Scratch {
    float* low = nullptr;    // [max_rows, rank]
    void* act = nullptr;     // [max_rows, rank] act
    float* gates = nullptr;  // [max_rows, hidden]

    // Makes room for a gate; before `take`.
    void fit(const RowGate& gate);
    Status take(const ScratchSource& source);

   private:
    int32_t rank_ = 0;
    int32_t hidden_ = 0;
  };

  bool exists() const { return down.outputs > 0; }
  // `base` as of load_layer. Stays until the loader has finished or stopped. Errors as of
  // WeightLoader.
  Status load(PartLoader& loader, const std::string& base, const RowGateSpec& spec);
  // Enqueues the gating of x [max_rows, hidden] of dtype, in place.
  void apply(const LayerRows& rows, void* x, const Scratch& scratch, DType dtype) const;
};

}  // namespace foretoken
