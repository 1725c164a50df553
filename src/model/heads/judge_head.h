#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gguf/model_files.h"
#include "model/heads/row_layers.h"

namespace foretoken {

// What judges a text by its pooled state: matrices with an activation between, as classes
// ...ForSequenceClassification and ...ForRewardModel of transformers have them. They are small and
// stay on the host. Any thread.
class JudgeHead {
 public:
  // Nothing for a model whose config.json names no such class. NotFound names the tensors that one
  // has; InvalidArgument those of other shapes; Unsupported an activation that is not built.
  static Result<std::optional<JudgeHead>> load(const ModelFiles& model, int32_t hidden_size);

  // The numbers of a text's labels, as they leave the last matrix; state [hidden_size].
  std::vector<float> judge(std::span<const float> state) const { return layers_.run(state); }
  int32_t num_labels() const { return layers_.outputs(); }

 private:
  explicit JudgeHead(RowLayers layers) : layers_(std::move(layers)) {}

  RowLayers layers_;
};

}  // namespace foretoken
