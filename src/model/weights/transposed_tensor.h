#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "base/result.h"
#include "model/files/safetensors.h"

namespace foretoken {

// A matrix that the file has with its rows as columns, as it is wanted, in memory of its own.
class TransposedTensor {
 public:
  // Reads `tensor`, of two dimensions. Unsupported where its elements are no plain numbers; other
  // errors as of TensorView::read.
  static Result<std::unique_ptr<TransposedTensor>> create(const TensorView& tensor);

  const TensorView& view() const { return view_; }  // as long as this

 private:
  TransposedTensor() = default;

  TensorView view_;
  std::vector<std::byte> elements_;
};

}  // namespace foretoken
