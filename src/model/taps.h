#pragma once
#include <cstdint>
#include <vector>

#include "device/dtype.h"
#include "model/model.h"

namespace foretoken {

// Which hidden states of a model drafters want, and where each of them keeps those.
class Taps {
 public:
  // Of a model of this configuration, which lives longer and whose type pages have.
  explicit Taps(const ModelConfig& config) : config_(config) {}

  // As of Model::add_tap and Model::pass_on.
  void add(const TapSink& sink);
  void pass_on(std::vector<int32_t> layers) { layers_ = std::move(layers); }

  // Of all of them, ascending, each once; without what lies behind the layers.
  const std::vector<int32_t>& layers() const { return layers_; }
  bool has(int32_t layer) const;
  // The same of what lies behind the layers.
  bool wants(int32_t behind) const;

  // Enqueues what keeps `states` [max_rows, TapSink::width_of], of the live rows of `tensors`:
  // floats, or with TapSink::kFinalNorm rows of the model's type. Nothing where nobody wants them.
  void keep(Queue& queue, const StepTensors& tensors, int32_t max_rows, int32_t layer,
            const void* states) const;

 private:
  const ModelConfig& config_;
  std::vector<TapSink> sinks_;
  std::vector<int32_t> layers_;
};

}  // namespace foretoken
