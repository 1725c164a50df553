#pragma once
#include <cstdint>

#include "device/dtype.h"

namespace foretoken {

// A view of row-major device memory; it owns nothing and is trivially copyable.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;  // elements a row

  int64_t num_bytes() const { return rows * cols * static_cast<int64_t>(dtype_size(dtype)); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

}  // namespace foretoken
