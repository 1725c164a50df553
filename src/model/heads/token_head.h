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

// What becomes of the state of each token of a text: a short vector, by which texts are compared
// token by token (late interaction, Khattab and Zaharia 2020), or numbers of labels. The matrices
// are small and stay on the host. Any thread.
class TokenHead {
 public:
  // Nothing for a model whose folder says neither: a class ColBERT (HF_ColBERT and others) or
  // ...ForTokenClassification in its config.json, or modules Dense without Pooling (PyLate).
  // NotFound names the tensors that such a model has; InvalidArgument those of other shapes.
  static Result<std::optional<TokenHead>> load(const ModelFiles& model, int32_t hidden_size);

  // Of states [tokens, hidden_size] the numbers of each, one token after the other; vectors are
  // made as long as 1 where that is asked for.
  std::vector<float> run(std::span<const float> states, bool normalize) const;
  bool gives_labels() const { return gives_labels_; }
  int32_t size() const { return layers_.outputs(); }  // numbers of a token

 private:
  TokenHead(RowLayers layers, bool gives_labels)
      : layers_(std::move(layers)), gives_labels_(gives_labels) {}

  RowLayers layers_;
  bool gives_labels_;
};

}  // namespace foretoken
