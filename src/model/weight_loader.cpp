#include "model/weight_loader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "model/convert.h"

namespace foretoken {
namespace {

constexpr size_t kStagingBytes = size_t{64} << 20;

Status out_of_memory(const Device& device, const std::string& what, int64_t bytes) {
  return resource_exhausted("not enough memory on " + device.name() + " for " + what + ": " +
                            std::to_string(bytes >> 20) + " MiB wanted, " +
                            std::to_string(device.free_memory() >> 20) +
                            " MiB free; use a smaller model or --dtype bfloat16");
}

std::string shape_text(std::span<const int64_t> shape) {
  TensorView view;
  view.shape.assign(shape.begin(), shape.end());
  return view.shape_text();
}

}  // namespace

WeightLoader::WeightLoader(Device& device, const Checkpoint* checkpoint, DType dtype,
                           int64_t total_bytes, Progress progress,
                           const std::atomic<bool>* cancelled)
    : device_(device),
      checkpoint_(checkpoint),
      dtype_(dtype),
      total_bytes_(total_bytes),
      progress_(std::move(progress)),
      cancelled_(cancelled) {}

Result<std::unique_ptr<WeightLoader>> WeightLoader::create(Device& device,
                                                           const Checkpoint* checkpoint,
                                                           DType dtype, int64_t total_bytes,
                                                           Progress progress,
                                                           const std::atomic<bool>* cancelled) {
  if (total_bytes > device.free_memory()) {
    return out_of_memory(device, "the weights", total_bytes);
  }
  std::unique_ptr<WeightLoader> loader(
      new WeightLoader(device, checkpoint, dtype, total_bytes, std::move(progress), cancelled));
  FT_ASSIGN_OR_RETURN(loader->queue_, device.make_queue());
  return loader;
}

// Elements of a tensor in host memory as `dtype`: the mapped file itself where it has the right
// type and alignment, otherwise `buffer`.
Result<const void*> WeightLoader::fetch(const std::string& name, std::vector<int64_t> shape,
                                        DType dtype, float dummy_value,
                                        std::vector<std::byte>* buffer) {
  if (cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed)) {
    return aborted("loading was cancelled before tensor '" + name + "'");
  }
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  const size_t bytes = static_cast<size_t>(count) * dtype_size(dtype);
  if (checkpoint_ == nullptr) {
    buffer->resize(bytes);
    if (shape.size() == 1) {
      std::fill_n(reinterpret_cast<float*>(buffer->data()), count, dummy_value);
    } else {
      const float deviation = 1.0f / std::sqrt(static_cast<float>(shape.back()));
      fill_random(name, count, deviation, dtype, buffer->data());
    }
    return static_cast<const void*>(buffer->data());
  }
  FT_ASSIGN_OR_RETURN(const TensorView* tensor, find(name, shape));
  const bool same = (tensor->dtype == FileDType::kF32 && dtype == DType::kF32) ||
                    (tensor->dtype == FileDType::kBF16 && dtype == DType::kBF16);
  if (same && reinterpret_cast<uintptr_t>(tensor->data) % dtype_size(dtype) == 0) {
    return static_cast<const void*>(tensor->data);
  }
  buffer->resize(bytes);
  FT_RETURN_IF_ERROR(convert_tensor(*tensor, dtype, buffer->data()));
  return static_cast<const void*>(buffer->data());
}

// The tensor, which now counts as used.
Result<const TensorView*> WeightLoader::find(const std::string& name,
                                             std::span<const int64_t> shape) {
  FT_ASSIGN_OR_RETURN(const TensorView* tensor, checkpoint_->find(name));
  if (!std::equal(shape.begin(), shape.end(), tensor->shape.begin(), tensor->shape.end())) {
    return invalid_argument(tensor->file + ": tensor '" + name + "' has shape " +
                            tensor->shape_text() + ", but config.json asks for " +
                            shape_text(shape) +
                            "; the weights and config.json must be of the same model");
  }
  used_.insert(name);
  return tensor;
}

void WeightLoader::finish_tensor(int64_t num_elements) {
  bytes_done_ += num_elements * static_cast<int64_t>(dtype_size(dtype_));
  if (progress_) progress_(bytes_done_, total_bytes_);
}

Result<PackedWeight> WeightLoader::matrix(std::span<const TensorPart> parts, int64_t cols,
                                          WeightOrder order) {
  std::vector<std::vector<std::byte>> buffers(parts.size());
  std::vector<WeightPart> weights;
  int64_t rows = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    FT_ASSIGN_OR_RETURN(const void* data,
                        fetch(parts[i].name, {parts[i].rows, cols}, dtype_, 0, &buffers[i]));
    weights.push_back({data, parts[i].rows});
    rows += parts[i].rows;
  }
  void* handle = device_.pack_weight(weights, cols, dtype_, order);
  if (handle == nullptr) {
    return out_of_memory(device_, "tensor '" + parts[0].name + "'",
                         rows * cols * static_cast<int64_t>(dtype_size(dtype_)));
  }
  finish_tensor(rows * cols);
  return PackedWeight(device_, handle);
}

Result<PackedWeight> WeightLoader::matrix_rows(const TensorPart& part, int64_t cols,
                                               std::span<const int32_t> ids) {
  std::vector<std::byte> buffer;
  FT_ASSIGN_OR_RETURN(const void* data, fetch(part.name, {part.rows, cols}, dtype_, 0, &buffer));
  const size_t row_bytes = static_cast<size_t>(cols) * dtype_size(dtype_);
  std::vector<std::byte> rows(ids.size() * row_bytes);
  for (size_t i = 0; i < ids.size(); ++i) {
    FT_CHECK(ids[i] >= 0 && ids[i] < part.rows);
    std::memcpy(rows.data() + i * row_bytes,
                static_cast<const std::byte*>(data) + static_cast<size_t>(ids[i]) * row_bytes,
                row_bytes);
  }
  const WeightPart weight{rows.data(), static_cast<int64_t>(ids.size())};
  void* handle = device_.pack_weight({&weight, 1}, cols, dtype_);
  if (handle == nullptr) {
    return out_of_memory(device_, "rows of tensor '" + part.name + "'",
                         static_cast<int64_t>(rows.size()));
  }
  finish_tensor(weight.num_rows * cols);
  return PackedWeight(device_, handle);
}

Result<std::vector<int64_t>> WeightLoader::integers(const std::string& name, int64_t count) {
  FT_CHECK(checkpoint_ != nullptr);
  FT_ASSIGN_OR_RETURN(const TensorView* tensor, find(name, {&count, 1}));
  return read_integers(*tensor);
}

Result<const float*> WeightLoader::vector(Arena& arena, std::span<const TensorPart> parts,
                                          float dummy_value, float offset) {
  std::vector<float> values;
  for (const TensorPart& part : parts) {
    std::vector<std::byte> buffer;
    FT_ASSIGN_OR_RETURN(const void* data,
                        fetch(part.name, {part.rows}, DType::kF32, dummy_value, &buffer));
    const auto* floats = static_cast<const float*>(data);
    values.insert(values.end(), floats, floats + part.rows);
  }
  for (float& value : values) value += offset;
  FT_ASSIGN_OR_RETURN(void* memory, upload(arena, values.data(), values.size() * sizeof(float),
                                           "norm weights and biases"));
  finish_tensor(static_cast<int64_t>(values.size()));
  return static_cast<const float*>(memory);
}

Result<const void*> WeightLoader::table(Arena& arena, const std::string& name, int64_t rows,
                                        int64_t cols) {
  std::vector<std::byte> buffer;
  FT_ASSIGN_OR_RETURN(const void* data, fetch(name, {rows, cols}, dtype_, 0, &buffer));
  FT_ASSIGN_OR_RETURN(void* memory,
                      upload(arena, data, static_cast<size_t>(rows * cols) * dtype_size(dtype_),
                             "the embedding table"));
  finish_tensor(rows * cols);
  return static_cast<const void*>(memory);
}

Result<void*> WeightLoader::upload(Arena& arena, const void* data, size_t bytes, const char* what) {
  FT_ASSIGN_OR_RETURN(void* memory, arena.take(bytes, what));
  Arena staging(device_, MemoryKind::kPinned);
  const size_t chunk = std::min(bytes, kStagingBytes);
  FT_ASSIGN_OR_RETURN(void* pinned, staging.take(chunk, "a staging buffer"));
  for (size_t at = 0; at < bytes; at += chunk) {
    const size_t size = std::min(chunk, bytes - at);
    std::memcpy(pinned, static_cast<const std::byte*>(data) + at, size);
    queue_->copy(static_cast<std::byte*>(memory) + at, pinned, size);
    FT_RETURN_IF_ERROR(queue_->drain());
  }
  return memory;
}

bool WeightLoader::has(const std::string& name) const {
  return checkpoint_ == nullptr || checkpoint_->tensors().contains(name);
}

void WeightLoader::ignore_all(const std::string& beginning) {
  if (checkpoint_ == nullptr) return;
  for (const auto& [name, tensor] : checkpoint_->tensors()) {
    if (name.starts_with(beginning)) used_.insert(name);
  }
}

Status WeightLoader::check_all_used(const std::string& architecture) const {
  if (checkpoint_ == nullptr) return {};
  for (const auto& [name, tensor] : checkpoint_->tensors()) {
    if (!used_.contains(name)) {
      return invalid_argument(tensor->file + ": " + architecture + " has no use for tensor '" +
                              name + "'; config.json does not describe these weights");
    }
  }
  return {};
}

}  // namespace foretoken
