#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

class Checkpoint;

// Matrices, activations and norms that one row goes through on the host. They are small. Any
// thread, once they are loaded.
class RowLayers {
 public:
  enum class After : uint8_t { kNothing, kTanh, kRelu, kGelu };

  // Adds `name`.weight, `name`.bias where there is one, and what follows. NotFound where there is
  // none; InvalidArgument where it does not fit what is before it.
  Status add(const Checkpoint& files, const std::string& name, After after);
  // Adds a layer norm of what leaves the last one, with a bias where there is one. The same errors.
  Status add_norm(const Checkpoint& files, const std::string& name, float eps);

  // row [inputs()]; what leaves the last one, [outputs()].
  std::vector<float> run(std::span<const float> row) const;
  bool empty() const { return layers_.empty(); }
  int32_t inputs() const { return layers_.front().inputs; }
  int32_t outputs() const { return layers_.back().outputs; }

 private:
  struct Layer {
    int32_t inputs = 0;
    int32_t outputs = 0;
    std::vector<float> matrix;  // [inputs, outputs]
    std::vector<float> bias;    // [outputs], or empty
    After after = After::kNothing;
    std::vector<float> norm;       // [outputs], or empty: there is none
    std::vector<float> norm_bias;  // [outputs], or empty
    float eps = 0;
  };
  static void end(const Layer& layer, std::span<double> y);

  std::vector<Layer> layers_;
};

}  // namespace foretoken
