#include "model/safetensors_writer.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace foretoken {
namespace {

struct ElementType {
  const char* name;
  int64_t size;
};

ElementType element_type(FileDType dtype) {
  switch (dtype) {
    case FileDType::kF32:
      return {"F32", 4};
    case FileDType::kBF16:
      return {"BF16", 2};
    case FileDType::kF16:
      return {"F16", 2};
    case FileDType::kI64:
      return {"I64", 8};
    case FileDType::kBool:
      return {"BOOL", 1};
    case FileDType::kOther:
      break;
  }
  FT_CHECK(false);
}

int64_t bytes_of(const TensorToWrite& tensor) {
  int64_t bytes = element_type(tensor.dtype).size;
  for (const int64_t extent : tensor.shape) bytes *= extent;
  return bytes;
}

}  // namespace

Status write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  header["__metadata__"] = {{"format", "pt"}};
  int64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    FT_CHECK_MSG(!header.contains(tensor.name), tensor.name);
    const int64_t end = offset + bytes_of(tensor);
    header[tensor.name] = {{"dtype", element_type(tensor.dtype).name},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t header_bytes = text.size();

  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  std::vector<std::byte> buffer;
  for (const TensorToWrite& tensor : tensors) {
    if (!file) break;
    buffer.resize(static_cast<size_t>(bytes_of(tensor)));
    tensor.fill(buffer.data());
    file.write(reinterpret_cast<const char*>(buffer.data()),
               static_cast<std::streamsize>(buffer.size()));
  }
  file.close();
  if (!file) {
    return invalid_argument("cannot write " + path +
                            "; check that the folder exists, may be "
                            "written and has room for " +
                            std::to_string(offset >> 20) + " MiB");
  }
  return {};
}

}  // namespace foretoken
