#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/files/containers/safetensors.h"

namespace foretoken {

// A tensor to write; `fill` stores its row-major elements into memory of exactly the right size.
// Fills of several tensors may run at once.
struct TensorToWrite {
  std::string name;
  FileDType dtype = FileDType::kF32;  // not kOther
  std::vector<int64_t> shape;
  std::function<void(std::byte*)> fill;
};

// Writes a .safetensors file, tensors in the given order. Names must differ. Large files are filled
// and written by several threads, with at most one tensor or 2 GiB in memory.
// InvalidArgument when the file cannot be written.
Status write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors);

}  // namespace foretoken
