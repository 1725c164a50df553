#include "model/files/containers/safetensors.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "model/files/containers/joined_tensor.h"
#include "model/files/containers/json_file.h"
#include "model/files/containers/unpacked_tensor.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// The format's own limit; a longer header is a broken file.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

struct ElementType {
  std::string_view name;
  int64_t size;
  FileDType dtype;
};

constexpr ElementType kElementTypes[] = {
    {"F32", 4, FileDType::kF32},       {"BF16", 2, FileDType::kBF16},
    {"F16", 2, FileDType::kF16},       {"F64", 8, FileDType::kOther},
    {"I64", 8, FileDType::kI64},       {"U64", 8, FileDType::kOther},
    {"I32", 4, FileDType::kOther},     {"U32", 4, FileDType::kOther},
    {"I16", 2, FileDType::kOther},     {"U16", 2, FileDType::kOther},
    {"I8", 1, FileDType::kOther},      {"U8", 1, FileDType::kOther},
    {"BOOL", 1, FileDType::kBool},     {"F8_E4M3", 1, FileDType::kOther},
    {"F8_E5M2", 1, FileDType::kOther}, {"F8_E8M0", 1, FileDType::kOther}};

constexpr const char* kFetchAgain = "; the file is damaged or incomplete, fetch it again";

bool read_size(const Json& value, int64_t* out) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX}) return false;
  *out = value.get<int64_t>();
  return *out >= 0;
}

// Fills type, shape and byte count from a header entry; `begin` becomes the offset of its data.
Status parse_entry(const Json& entry, const std::string& where, TensorView* tensor,
                   int64_t* begin) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
      !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2) {
    return invalid_argument(where + ": dtype, shape or data_offsets is missing" + kFetchAgain);
  }
  tensor->dtype_name = entry["dtype"].get<std::string>();
  const auto* type = std::find_if(std::begin(kElementTypes), std::end(kElementTypes),
                                  [&](const auto& t) { return t.name == tensor->dtype_name; });
  if (type == std::end(kElementTypes)) {
    return invalid_argument(where + ": unknown dtype '" + tensor->dtype_name +
                            "'; convert the model to F32, BF16 or F16");
  }
  tensor->dtype = type->dtype;
  if (type->name == "F64") tensor->block = find_block_type("F64");
  int64_t bytes = type->size;
  for (const Json& size : entry["shape"]) {
    int64_t extent = 0;
    if (!read_size(size, &extent) || __builtin_mul_overflow(bytes, extent, &bytes)) {
      return invalid_argument(where + ": impossible shape " + entry["shape"].dump() + kFetchAgain);
    }
    tensor->shape.push_back(extent);
  }
  int64_t end = 0;
  if (!read_size(entry["data_offsets"][0], begin) || !read_size(entry["data_offsets"][1], &end) ||
      end < *begin) {
    return invalid_argument(where + ": impossible data_offsets " + entry["data_offsets"].dump() +
                            kFetchAgain);
  }
  tensor->num_bytes = end - *begin;
  if (tensor->num_bytes != bytes) {
    return invalid_argument(where + ": shape " + tensor->shape_text() + " of " +
                            tensor->dtype_name + " needs " + std::to_string(bytes) +
                            " bytes, but data_offsets give " + std::to_string(tensor->num_bytes) +
                            kFetchAgain);
  }
  return {};
}

}  // namespace

int64_t TensorView::num_elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

int64_t TensorView::element_bytes() const {
  const int64_t count = num_elements();
  return count > 0 ? num_bytes / count : 0;
}

Status TensorView::read(int64_t first, int64_t count, void* to) const {
  FT_CHECK(first >= 0 && count >= 0 && first + count <= num_bytes);
  if (unpacked != nullptr) return unpacked->read(first, count, to);
  if (joined != nullptr) return joined->read(first, count, to);
  if (descriptor < 0) {
    std::memcpy(to, data + first, static_cast<size_t>(count));
    return {};
  }
  const int64_t got = read_at(descriptor, file_offset + first, count, to);
  if (got < 0) {
    return internal_error(file + ": tensor '" + name + "' cannot be read (" + std::strerror(errno) +
                          "); check the disk or fetch the file again");
  }
  if (got < count) {
    return invalid_argument(file + ": the file became shorter and ends inside tensor '" + name +
                            "'" + kFetchAgain);
  }
  return {};
}

Status unfit_shape(const TensorView& tensor, const std::string& why) {
  return invalid_argument(tensor.file + ": tensor '" + tensor.name + "' has shape " +
                          tensor.shape_text() + why + "; the files must be of one model");
}

std::string TensorView::shape_text() const {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + "]";
}

Result<std::vector<int64_t>> read_integers(const TensorView& tensor) {
  const bool is_narrow = tensor.dtype == FileDType::kOther && tensor.dtype_name == "I32";
  if (!is_narrow && tensor.dtype != FileDType::kI64) {
    return unsupported(tensor.file + ": tensor '" + tensor.name + "' has dtype " +
                       tensor.dtype_name + ", but must be I64 or I32; convert it");
  }
  std::vector<int64_t> values(static_cast<size_t>(tensor.num_elements()));
  if (values.empty()) return values;
  if (!is_narrow) {
    FT_RETURN_IF_ERROR(tensor.read(0, tensor.num_bytes, values.data()));
    return values;
  }
  std::vector<int32_t> narrow(values.size());
  FT_RETURN_IF_ERROR(tensor.read(0, tensor.num_bytes, narrow.data()));
  return std::vector<int64_t>(narrow.begin(), narrow.end());
}

Result<std::unique_ptr<SafetensorsFile>> SafetensorsFile::open(const std::string& path) {
  std::unique_ptr<SafetensorsFile> file(new SafetensorsFile(path));
  FT_ASSIGN_OR_RETURN(
      file->file_,
      MappedFile::open(
          path, 8,
          std::string("shorter than the 8 bytes of a safetensors header length") + kFetchAgain));
  FT_RETURN_IF_ERROR(file->read_header());
  return file;
}

// Where another kind of file has the name of this one.
Status SafetensorsFile::check_kind() const {
  const std::string_view front(reinterpret_cast<const char*>(file_->memory()), 4);
  if (front == "GGUF") {
    return invalid_argument(path_ +
                            ": it is a GGUF file and no safetensors file; give this file itself as "
                            "the model, or name it model.gguf");
  }
  if (front.starts_with("PK")) {
    return invalid_argument(path_ +
                            ": it is a file of PyTorch and no safetensors file; name it "
                            "pytorch_model.bin");
  }
  return {};
}

Status SafetensorsFile::read_header() {
  FT_RETURN_IF_ERROR(check_kind());
  const std::byte* memory = file_->memory();
  const size_t size = file_->size();
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, memory, 8);
  if (header_bytes > kMaxHeaderBytes || header_bytes > size - 8) {
    return invalid_argument(path_ + ": header length " + std::to_string(header_bytes) +
                            " does not fit the file of " + std::to_string(size) + " bytes" +
                            kFetchAgain);
  }
  const std::string_view text(reinterpret_cast<const char*>(memory + 8), header_bytes);
  const Result<Json> parsed = parse_json_object(text, path_ + " (header)");
  if (!parsed.ok()) return invalid_argument(parsed.status().message() + kFetchAgain);
  const Json& header = parsed.value();
  const std::byte* data = memory + 8 + header_bytes;
  const auto data_bytes = static_cast<int64_t>(size - 8 - header_bytes);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      for (const auto& [key, said] : entry.items()) {
        if (said.is_string()) metadata_.emplace(key, said.get<std::string>());
      }
      continue;
    }
    TensorView tensor;
    tensor.name = name;
    tensor.file = path_;
    const std::string where = path_ + ": tensor '" + name + "'";
    int64_t begin = 0;
    FT_RETURN_IF_ERROR(parse_entry(entry, where, &tensor, &begin));
    if (begin + tensor.num_bytes > data_bytes || begin > data_bytes) {
      return invalid_argument(where + " ends at byte " + std::to_string(begin + tensor.num_bytes) +
                              " of the data, but the file holds " + std::to_string(data_bytes) +
                              kFetchAgain);
    }
    tensor.data = data + begin;
    tensor.descriptor = file_->descriptor();
    tensor.file_offset = tensor.data - memory;
    tensors_.emplace(name, std::move(tensor));
  }
  return check_layout(data_bytes);
}

Status SafetensorsFile::check_layout(int64_t data_bytes) const {
  std::vector<const TensorView*> order;
  for (const auto& [name, tensor] : tensors_) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return a->data != b->data ? a->data < b->data : a->num_bytes < b->num_bytes;
  });
  const std::byte* end = file_->memory() + file_->size();
  const std::byte* at = end - data_bytes;
  const TensorView* before = nullptr;
  for (const TensorView* tensor : order) {
    if (tensor->data != at) {
      const char* fault = tensor->data < at ? " overlaps " : " leaves a gap after ";
      return invalid_argument(path_ + ": tensor '" + tensor->name + "'" + fault +
                              (before ? "tensor '" + before->name + "'" : "the header") +
                              "; write the file again with a safetensors library");
    }
    at += tensor->num_bytes;
    before = tensor;
  }
  if (at != end) {
    return invalid_argument(path_ + ": " + std::to_string(end - at) +
                            " bytes after the last tensor" + kFetchAgain);
  }
  return {};
}

}  // namespace foretoken
