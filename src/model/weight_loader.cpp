#include "model/weight_loader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "kernels/fill_random.h"
#include "kernels/pack_rows.h"
#include "model/convert.h"

namespace foretoken {
namespace {

constexpr size_t kStagingBytes = size_t{64} << 20;
constexpr int64_t kScratchBytes = int64_t{32} << 20;

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
      scratch_arena_(device, MemoryKind::kDevice),
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

Status WeightLoader::check_cancelled(const std::string& name) const {
  if (cancelled_ == nullptr || !cancelled_->load(std::memory_order_relaxed)) return {};
  return aborted("loading was cancelled before tensor '" + name + "'");
}

// Elements of a tensor in host memory as `dtype`: the mapped file itself where it has the right
// type and alignment, otherwise `buffer`.
Result<const void*> WeightLoader::fetch(const std::string& name, std::vector<int64_t> shape,
                                        DType dtype, float dummy_value,
                                        std::vector<std::byte>* buffer) {
  FT_RETURN_IF_ERROR(check_cancelled(name));
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  const size_t bytes = static_cast<size_t>(count) * dtype_size(dtype);
  if (checkpoint_ == nullptr) {
    FT_CHECK(shape.size() == 1);
    buffer->resize(bytes);
    std::fill_n(reinterpret_cast<float*>(buffer->data()), count, dummy_value);
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

// Device memory for `bytes` that ops fill one after the other.
Result<void*> WeightLoader::scratch(int64_t bytes) {
  if (bytes > scratch_bytes_) {
    FT_ASSIGN_OR_RETURN(scratch_, scratch_arena_.take(static_cast<size_t>(bytes), "weights"));
    scratch_bytes_ = bytes;
  }
  return scratch_;
}

// The rows of [gate; up] as the slices have them side by side.
std::vector<WeightLoader::RowRun> WeightLoader::gate_up_slices(std::span<const RowRun> runs,
                                                               int64_t rows, int64_t slice) {
  std::vector<RowRun> sides;
  const auto append = [&](int64_t first, int64_t count) {
    int64_t at = 0;
    for (const RowRun& run : runs) {
      const int64_t begin = std::max(first, at);
      const int64_t end = std::min(first + count, at + run.num_rows);
      if (begin < end) sides.push_back({run.name, run.first_row + begin - at, end - begin});
      at += run.num_rows;
    }
  };
  for (int64_t first = 0; first < rows; first += slice) {
    const int64_t count = std::min(slice, rows - first) / 2;
    append(first / 2, count);
    append(rows / 2 + first / 2, count);
  }
  return sides;
}

// Random rows of `cols` elements are made where they are packed from.
Result<PackedWeight> WeightLoader::random_matrix(std::span<const RowRun> runs, int64_t cols,
                                                 WeightOrder order) {
  int64_t rows = 0;
  for (const RowRun& run : runs) rows += run.num_rows;
  const auto element = static_cast<int64_t>(dtype_size(dtype_));
  PackedWeight weight(device_, device_.make_weight(rows, cols, dtype_, order));
  if (weight.get() == nullptr) {
    return out_of_memory(device_, "tensor '" + runs[0].name + "'", rows * cols * element);
  }
  const int64_t slice = device_.weight_slice_rows(rows, cols, dtype_, order);
  std::vector<RowRun> in_slices;
  if (order == WeightOrder::kGateUp) {
    in_slices = gate_up_slices(runs, rows, slice);
    runs = in_slices;
  }
  const int64_t most = std::max<int64_t>(kScratchBytes / (slice * cols * element), 1) * slice;
  FT_ASSIGN_OR_RETURN(void* room, scratch(std::min(most, rows) * cols * element));
  for (int64_t first = 0; first < rows; first += most) {
    const int64_t end = std::min(first + most, rows);
    int64_t at = 0;
    for (const RowRun& run : runs) {
      const int64_t begin_here = std::max(first, at);
      const int64_t end_here = std::min(end, at + run.num_rows);
      if (begin_here < end_here) {
        enqueue_random(run.name, (run.first_row + begin_here - at) * cols,
                       (end_here - begin_here) * cols, cols,
                       static_cast<std::byte*>(room) + (begin_here - first) * cols * element);
      }
      at += run.num_rows;
    }
    pack_rows(*queue_, {.weight = weight.handle(),
                        .rows = room,
                        .scratch = nullptr,
                        .first_row = first,
                        .num_rows = end - first,
                        .n = rows,
                        .k = cols,
                        .dtype = dtype_,
                        .order = order});
  }
  FT_RETURN_IF_ERROR(queue_->drain());
  finish_tensor(rows * cols);
  return weight;
}

// Elements first .. first + count - 1 of a random matrix of `cols` columns.
void WeightLoader::enqueue_random(const std::string& name, int64_t first, int64_t count,
                                  int64_t cols, void* to) {
  const float deviation = 1.0f / std::sqrt(static_cast<float>(cols));
  fill_random(*queue_, {.to = to,
                        .first = first,
                        .count = count,
                        .seed = random_weight_seed(name),
                        .scale = random_weight_scale(deviation),
                        .dtype = dtype_});
}

Result<PackedWeight> WeightLoader::matrix(std::span<const TensorPart> parts, int64_t cols,
                                          WeightOrder order) {
  if (checkpoint_ == nullptr) {
    FT_RETURN_IF_ERROR(check_cancelled(parts[0].name));
    std::vector<RowRun> runs;
    for (const TensorPart& part : parts) runs.push_back({part.name, 0, part.rows});
    return random_matrix(runs, cols, order);
  }
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
  if (checkpoint_ == nullptr) {
    FT_RETURN_IF_ERROR(check_cancelled(part.name));
    std::vector<RowRun> runs;
    for (const int32_t id : ids) {
      FT_CHECK(id >= 0 && id < part.rows);
      const bool follows = !runs.empty() && runs.back().first_row + runs.back().num_rows == id;
      follows ? void(++runs.back().num_rows) : runs.push_back({part.name, id, 1});
    }
    return random_matrix(runs, cols, WeightOrder::kPlain);
  }
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
  if (checkpoint_ == nullptr) {
    FT_RETURN_IF_ERROR(check_cancelled(name));
    const auto bytes = static_cast<size_t>(rows * cols) * dtype_size(dtype_);
    FT_ASSIGN_OR_RETURN(void* room, arena.take(bytes, "the embedding table"));
    enqueue_random(name, 0, rows * cols, cols, room);
    FT_RETURN_IF_ERROR(queue_->drain());
    finish_tensor(rows * cols);
    return static_cast<const void*>(room);
  }
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
