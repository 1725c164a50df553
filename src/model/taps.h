#pragma once
#include <cstdint>
#include <vector>

#include "device/dtype.h"
#include "model/model.h"

namespace foretoken {

// Which hidden states of a model drafters want, and where each of them keeps those.
class Taps {
 public:
  // Of rows of `hidden` elements; `dtype` is the model's type, which pages have.
  Taps(int32_t hidden, DType dtype) : hidden_(hidden), dtype_(dtype) {}

  // As of Model::add_tap and Model::pass_on, of a model of num_layers layers.
  void add(const TapSink& sink, int32_t num_layers);
  void pass_on(std::vector<int32_t> layers) { layers_ = std::move(layers); }

  // Of all of them, ascending, each once; without the final norm.
  const std::vector<int32_t>& layers() const { return layers_; }
  bool has(int32_t layer) const;
  bool has_final_norm() const;

  // Enqueues what keeps `states` [max_rows, hidden], of the live rows of `tensors`: the residual in
  // float that enters `layer`, or with TapSink::kFinalNorm rows of the model's type. Nothing where
  // nobody wants them.
  void keep(Queue& queue, const StepTensors& tensors, int32_t max_rows, int32_t layer,
            const void* states) const;

 private:
  const int32_t hidden_;
  const DType dtype_;
  std::vector<TapSink> sinks_;
  std::vector<int32_t> layers_;
};

}  // namespace foretoken
