#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/safetensors.h"

namespace foretoken {

// A tensor to write; `fill` stores its row-major elements into memory of exactly the right size,
// so that only one tensor is in memory at a time.
struct TensorToWrite {
  std::string name;
  FileDType dtype = FileDType::kF32;  // not kOther
  std::vector<int64_t> shape;
  std::function<void(std::byte*)> fill;
};

// Writes a .safetensors file, tensors in the given order. Names must differ.
// InvalidArgument when the file cannot be written.
Status write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors);

}  // namespace foretoken
