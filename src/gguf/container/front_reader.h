#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "base/result.h"
#include "gguf/container/gguf_file.h"

namespace foretoken {

// What stands in front of the tensors' data.
struct GgufFront {
  std::map<std::string, GgufValue> metadata;
  std::map<std::string, GgufBytes> raw_metadata;
  std::map<std::string, GgufTensor> tensors;
};

// Reads and checks it. `file`: the whole content. The message of an error does not name the file.
Result<GgufFront> read_gguf_front(std::span<const std::byte> file);

}  // namespace foretoken
