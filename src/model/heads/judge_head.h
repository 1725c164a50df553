#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "gguf/model_files.h"

namespace foretoken {

class Checkpoint;

// What judges a text by its pooled state: matrices with an activation between, as classes
// ...ForSequenceClassification and ...ForRewardModel of transformers have them. They are small and
// stay on the host. Any thread.
class JudgeHead {
 public:
  // Nothing for a model whose config.json names no such class. NotFound names the tensors that one
  // has; InvalidArgument those of other shapes.
  static Result<std::optional<JudgeHead>> load(const ModelFiles& model, int32_t hidden_size);

  // The numbers of a text's labels, as they leave the last matrix; state [hidden_size].
  std::vector<float> judge(std::span<const float> state) const;
  int32_t num_labels() const { return layers_.back().outputs; }

 private:
  enum class After : uint8_t { kNothing, kTanh, kRelu };
  struct Layer {
    int32_t inputs = 0;
    int32_t outputs = 0;
    std::vector<float> matrix;  // [outputs, inputs]
    std::vector<float> bias;    // [outputs], or empty
    After after = After::kNothing;
  };
  // The names of matrices, the first of which the activation follows.
  struct Form {
    const char* first;  // null: there is one matrix
    const char* last;
    After between;
  };

  Status add_layer(const Checkpoint& files, const char* name, After after);

  std::vector<Layer> layers_;
};

}  // namespace foretoken
