#pragma once
#include <cstdint>
#include <string>

#include "model/layer/layer_rows.h"
#include "model/layer/linear.h"
#include "model/layer/norm.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// A learned path around a layer's mixer (LAuReL, Menghani et al. 2024): x + norm(right left x), of
// the rows x that enter the mixer. Their mean with the residual behind the mixer, times sqrt(2),
// goes on (Gemma 3n).
struct Laurel {
  Linear left;     // [rank, hidden]; without outputs: the layer has none
  Linear right;    // [hidden, rank]
  Norm post_norm;  // of what is added to x
  DType dtype = DType::kF32;
  NormSize size{};

  // Buffers that layers share.
  struct Scratch {
    float* narrow = nullptr;     // [max_rows, rank]
    void* narrow_act = nullptr;  // [max_rows, rank] act
    float* wide = nullptr;       // [max_rows, hidden]
    float* path = nullptr;       // [max_rows, hidden]

    // Makes room for a layer; before `take`.
    void fit(const Laurel& layer);
    Status take(const ScratchSource& source);

   private:
    int32_t rank_ = 0;
    int32_t hidden_ = 0;
  };

  bool exists() const { return left.outputs > 0; }
  // `base` as of load_layer.
  Status load(PartLoader& loader, const std::string& base, int32_t rank);

  // Enqueues what leads around the mixer: path, of which x [max_rows, hidden] act are the rows
  // that path has already.
  void add_path(const LayerRows& rows, const void* x, const Scratch& scratch) const;
};

}  // namespace foretoken
