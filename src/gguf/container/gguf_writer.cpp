#include "gguf/container/gguf_writer.h"

#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr std::string_view kMagicText = "GGUF";
constexpr int64_t kAlignment = 32;  // of tensors, where general.alignment says nothing
constexpr uint32_t kVersion = 3;

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_text(std::string& bytes, std::string_view text) {
  put(bytes, uint64_t{text.size()});
  bytes += text;
}

// What replaces a file is to replace a GGUF file, not one of the model's own.
Status check_replaced(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  std::ifstream file(path, std::ios::binary);
  std::string magic(kMagicText.size(), 0);
  if (!file.read(magic.data(), std::ssize(magic)) || magic == kMagicText) return {};
  return invalid_argument("'" + path + "' is no GGUF file and is not replaced; name another file");
}

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void GgufKeys::add_key(std::string_view key, GgufType type) {
  put_text(bytes_, key);
  put(bytes_, type);
  ++count_;
}

void GgufKeys::add_array(std::string_view key, GgufType type, uint64_t count) {
  add_key(key, GgufType::kArray);
  put(bytes_, type);
  put(bytes_, count);
}

void GgufKeys::add_raw(std::string_view key, std::span<const std::byte> value) {
  put_text(bytes_, key);
  bytes_.append(reinterpret_cast<const char*>(value.data()), value.size());
  ++count_;
}

void GgufKeys::add_text(std::string_view key, std::string_view value) {
  add_key(key, GgufType::kText);
  put_text(bytes_, value);
}

void GgufKeys::add_u32(std::string_view key, uint32_t value) {
  add_key(key, GgufType::kU32);
  put(bytes_, value);
}

void GgufKeys::add_f32(std::string_view key, float value) {
  add_key(key, GgufType::kF32);
  put(bytes_, value);
}

void GgufKeys::add_flag(std::string_view key, bool value) {
  add_key(key, GgufType::kBool);
  put(bytes_, static_cast<uint8_t>(value));
}

void GgufKeys::add_texts(std::string_view key, std::span<const std::string> values) {
  add_array(key, GgufType::kText, values.size());
  for (const std::string& value : values) put_text(bytes_, value);
}

void GgufKeys::add_i32s(std::string_view key, std::span<const int32_t> values) {
  add_array(key, GgufType::kI32, values.size());
  for (const int32_t value : values) put(bytes_, value);
}

void GgufKeys::add_f32s(std::string_view key, std::span<const float> values) {
  add_array(key, GgufType::kF32, values.size());
  for (const float value : values) put(bytes_, value);
}

int64_t GgufTensorEntry::num_bytes() const {
  FT_CHECK(shape.empty() || shape.back() % type->elements == 0);
  int64_t elements = 1;
  for (const int64_t extent : shape) elements *= extent;
  return elements / type->elements * type->bytes;
}

Result<std::unique_ptr<GgufWriter>> GgufWriter::create(const std::string& path,
                                                       const GgufKeys& keys,
                                                       std::vector<GgufTensorEntry> tensors,
                                                       bool replaces) {
  std::string front(kMagicText);
  put(front, kVersion);
  put(front, uint64_t{tensors.size()});
  put(front, keys.count());
  front += keys.bytes();
  int64_t offset = 0;
  for (const GgufTensorEntry& tensor : tensors) {
    put_text(front, tensor.name);
    put(front, static_cast<uint32_t>(tensor.shape.size()));
    for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent) {
      put(front, static_cast<uint64_t>(*extent));
    }
    put(front, tensor.type->number);
    put(front, static_cast<uint64_t>(offset));
    offset += aligned(tensor.num_bytes());
  }
  front.resize(static_cast<size_t>(aligned(std::ssize(front))));
  if (replaces) FT_RETURN_IF_ERROR(check_replaced(path));
  auto writer = std::make_unique<GgufWriter>();
  writer->tensors_ = std::move(tensors);
  FT_ASSIGN_OR_RETURN(writer->file_, NewFile::create(path, std::ssize(front) + offset, replaces));
  FT_RETURN_IF_ERROR(writer->file_->append(front.data(), std::ssize(front)));
  return writer;
}

Status GgufWriter::append(std::span<const std::byte> bytes) {
  FT_CHECK(tensor_ < tensors_.size());
  const int64_t wanted = tensors_[tensor_].num_bytes();
  FT_CHECK(written_ + std::ssize(bytes) <= wanted);
  FT_RETURN_IF_ERROR(file_->append(bytes.data(), std::ssize(bytes)));
  written_ += std::ssize(bytes);
  if (written_ < wanted) return {};
  ++tensor_;
  written_ = 0;
  return pad();
}

Status GgufWriter::pad() {
  static constexpr std::byte kZeros[kAlignment] = {};
  return file_->append(kZeros, aligned(file_->size()) - file_->size());
}

}  // namespace foretoken
