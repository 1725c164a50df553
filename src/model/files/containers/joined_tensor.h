#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

struct TensorView;

// A matrix whose rows or columns lie in several files, as those of tensor parallel checkpoints do.
// Its tensors must outlive it.
class JoinedTensor {
 public:
  enum class Axis : uint8_t { kRows, kColumns };

  // InvalidArgument names the tensor whose type or other side is not that of the first.
  static Result<std::unique_ptr<JoinedTensor>> create(std::vector<const TensorView*> parts,
                                                      Axis axis);

  // A view under the name, whose elements this tensor gives and which it must outlive.
  TensorView view(const std::string& name) const;

  // Bytes [first, first + count) of the elements, rows one after the other. Errors as of
  // TensorView::read. Any thread.
  Status read(int64_t first, int64_t count, void* to) const;

 private:
  JoinedTensor(std::vector<const TensorView*> parts, Axis axis)
      : parts_(std::move(parts)), axis_(axis) {}
  int64_t run_bytes(const TensorView& part) const;

  const std::vector<const TensorView*> parts_;
  const Axis axis_;
};

}  // namespace foretoken
