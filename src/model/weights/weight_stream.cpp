#include "model/weights/weight_stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/thread_limit.h"
#include "base/thread_role.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/quantized_tensor.h"

namespace foretoken {
namespace {

// With pieces of 4 MiB, 8 to 16 threads fill a PCIe 5 link from the page cache; larger pieces leave
// the processor's caches between reading and copying.
constexpr int64_t kMaxReaders = 12;
constexpr int64_t kBytesPerReader = int64_t{32} << 20;  // fewer are not worth a thread
constexpr size_t kWordBytes = 256;                      // of a slot's event, behind its piece
constexpr auto kPollTime = std::chrono::microseconds(30);
constexpr auto kLookForErrors = std::chrono::milliseconds(500);
constexpr auto kProgressTime = std::chrono::milliseconds(50);

}  // namespace

namespace {

// Plain tensors are read by the row's part; others by whole rows, which are cut afterwards, since
// their codes do not lie by column.
Status read_columns(const TensorRun& run, DType dtype, std::byte* to, std::vector<std::byte>& raw) {
  const auto size = static_cast<int64_t>(dtype_size(dtype));
  const ColumnRange cols = run.columns();
  const bool plain = run.tensor->packed == nullptr && run.tensor->affine == nullptr &&
                     run.tensor->block == nullptr && run.tensor->rounded == nullptr &&
                     run.tensor->made == nullptr;
  std::vector<std::byte> whole(plain ? 0 : static_cast<size_t>(run.stride * size));
  for (int64_t row = 0; row < run.count / run.row_elements; ++row) {
    const int64_t first = run.first - cols.first + row * run.stride;  // of the whole row
    if (!plain) {
      FT_RETURN_IF_ERROR(read_elements(*run.tensor, first, run.stride, dtype, whole.data(), raw));
    }
    for (int64_t column = 0; column < cols.count; column += cols.width()) {
      std::byte* out = to + (row * cols.count + column) * size;
      const int64_t from = cols.source_of(column);
      if (plain) {
        FT_RETURN_IF_ERROR(read_elements(*run.tensor, first + from, cols.width(), dtype, out, raw));
      } else {
        std::memcpy(out, whole.data() + from * size, static_cast<size_t>(cols.width() * size));
      }
    }
  }
  return {};
}

// Some rows of the tensor at a time, so that what is read and what is written stay in the caches.
template <class T>
Status read_turned(const TensorRun& run, DType dtype, T* to, std::vector<std::byte>& raw) {
  constexpr int64_t kAtOnce = 64;
  const int64_t cols = run.row_elements, rows = run.count / cols;
  std::vector<T> lines(static_cast<size_t>(kAtOnce * rows));
  for (int64_t first = 0; first < cols; first += kAtOnce) {
    const int64_t here = std::min(kAtOnce, cols - first);
    for (int64_t i = 0; i < here; ++i) {
      FT_RETURN_IF_ERROR(read_elements(*run.tensor, run.first + (first + i) * run.stride, rows,
                                       dtype, lines.data() + i * rows, raw));
    }
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < here; ++i) {
        to[row * cols + first + i] = lines[static_cast<size_t>(i * rows + row)];
      }
    }
  }
  return {};
}

Status read_any_run(const TensorRun& run, DType dtype, std::byte* to, std::vector<std::byte>& raw) {
  if (run.stride == 0) return read_elements(*run.tensor, run.first, run.count, dtype, to, raw);
  if (!run.turned) return read_columns(run, dtype, to, raw);
  return dtype == DType::kF32 ? read_turned(run, dtype, reinterpret_cast<float*>(to), raw)
                              : read_turned(run, dtype, reinterpret_cast<uint16_t*>(to), raw);
}

Status read_quantized_columns(const TensorRun& run, std::byte* to, std::vector<std::byte>& raw) {
  const QuantForm& form = *quantized_form(*run.tensor);
  const int64_t rows = run.count / run.row_elements;
  const int64_t whole_bytes = quantized_row_bytes(form, run.stride);
  std::vector<std::byte> whole(static_cast<size_t>(rows * whole_bytes));
  FT_RETURN_IF_ERROR(
      read_quantized_rows(*run.tensor, run.first / run.stride, rows, whole.data(), raw));
  for (int64_t row = 0; row < rows; ++row) {
    cut_quantized_row(form, whole.data() + row * whole_bytes, run.columns(), to);
    to += quantized_row_bytes(form, run.row_elements);
  }
  return {};
}

}  // namespace

int64_t WeightPiece::num_bytes() const {
  int64_t bytes = 0;
  for (const TensorRun& run : runs) {
    bytes += keeps_quantized
                 ? run.count / pack.k * quantized_row_bytes(*quantized_form(*run.tensor), pack.k)
                 : run.count * static_cast<int64_t>(dtype_size(dtype));
  }
  return bytes;
}

WeightStreamConfig weight_stream_config(int64_t total_bytes) {
  const auto threads = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, kMaxReaders);
  WeightStreamConfig config;
  config.num_readers =
      static_cast<int>(std::clamp<int64_t>(total_bytes / kBytesPerReader, 1, threads));
  return config;
}

WeightStream::WeightStream(Device& device, Queue& queue, const WeightStreamConfig& config,
                           const std::atomic<bool>* cancelled)
    : device_(device), queue_(queue), config_(config), cancelled_(cancelled) {}

Status WeightStream::add(WeightPiece piece) {
  std::lock_guard lock(mutex_);
  if (!error_.ok()) return error_;
  pieces_.push_back(std::move(piece));
  if (readers_.size() == static_cast<size_t>(config_.num_readers)) {
    changed_.notify_one();
    return {};
  }
  auto reader = std::make_unique<Reader>(device_);
  const Status started = start_threads([&]() -> Status {
    reader->thread = std::thread([this, own = reader.get()] { reader_main(*own); });
    return {};
  });
  if (!started.ok()) {
    changed_.notify_one();
    return readers_.empty() ? started : Status();
  }
  readers_.push_back(std::move(reader));
  ++num_running_;
  return {};
}

Status WeightStream::finish(const std::function<void()>& waiting) {
  const Status status = settle(waiting);
  if (cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed)) {
    return aborted("loading was cancelled");
  }
  return status;
}

void WeightStream::stop() {
  fail(aborted("loading was stopped"));
  static_cast<void>(settle([] {}));
}

// The readers end; the queue is done with their memory before it goes.
Status WeightStream::settle(const std::function<void()>& waiting) {
  std::unique_lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
  while (num_running_ > 0) {
    changed_.wait_for(lock, kProgressTime);
    lock.unlock();
    waiting();
    lock.lock();
  }
  for (const auto& reader : readers_) reader->thread.join();
  const Status drained = queue_.drain();
  readers_.clear();
  closed_ = false;
  return error_.ok() ? drained : error_;
}

void WeightStream::reader_main(Reader& reader) {
  set_thread_role(ThreadRole::kOther, "ft-load");
  WeightPiece piece;
  for (size_t i = 0; next_piece(&piece); ++i) {
    Status status;
    try {
      status = bring(piece, reader, reader.slots[i % 2]);
    } catch (const std::bad_alloc&) {
      status = resource_exhausted(
          "not enough host memory to read weights; close other programs or use a smaller model");
    }
    if (!status.ok()) fail(std::move(status));
  }
  std::lock_guard lock(mutex_);
  --num_running_;
  changed_.notify_all();
}

// False when there will be no more.
bool WeightStream::next_piece(WeightPiece* piece) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || !pieces_.empty(); });
  if (pieces_.empty()) return false;
  *piece = std::move(pieces_.front());
  pieces_.pop_front();
  return true;
}

void WeightStream::fail(Status status) {
  failed_.store(true, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  if (error_.ok()) std::swap(error_, status);
  pieces_.clear();
}

Status WeightStream::bring(const WeightPiece& piece, Reader& reader, Slot& slot) {
  if (failed_.load(std::memory_order_relaxed)) return {};
  if (cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed)) {
    return aborted("loading was cancelled at tensor '" + piece.runs.front().tensor->name + "'");
  }
  FT_RETURN_IF_ERROR(wait_until_free(slot));
  FT_RETURN_IF_ERROR(make_room(reader, slot, piece.num_bytes()));
  FT_RETURN_IF_ERROR(read(piece, slot.pinned, reader.raw));
  enqueue(piece, slot);
  bytes_done_.fetch_add(piece.counted_bytes, std::memory_order_relaxed);
  return {};
}

// A failed queue stores no events any more, so it is asked now and then.
Status WeightStream::wait_until_free(const Slot& slot) {
  if (slot.num_uses == 0) return {};
  auto look = std::chrono::steady_clock::now() + kLookForErrors;
  while (slot.used.word->load(std::memory_order_acquire) < slot.num_uses) {
    std::this_thread::sleep_for(kPollTime);
    if (std::chrono::steady_clock::now() < look) continue;
    std::lock_guard lock(queue_mutex_);
    FT_RETURN_IF_ERROR(queue_.drain());
    look = std::chrono::steady_clock::now() + kLookForErrors;
  }
  return {};
}

// The memory for a smaller piece stays until the end.
Status WeightStream::make_room(Reader& reader, Slot& slot, int64_t bytes) {
  if (bytes <= slot.num_bytes) return {};
  const auto size = static_cast<size_t>(bytes + 7) / 8 * 8;
  FT_ASSIGN_OR_RETURN(void* pinned, reader.pinned.take(size + kWordBytes, "staging weights"));
  FT_ASSIGN_OR_RETURN(slot.scratch, reader.scratch.take(size, "staging weights"));
  slot.pinned = static_cast<std::byte*>(pinned);
  slot.used.word = new (slot.pinned + size) std::atomic<uint64_t>(slot.num_uses);
  slot.num_bytes = static_cast<int64_t>(size);
  return {};
}

Status WeightStream::read(const WeightPiece& piece, std::byte* to, std::vector<std::byte>& raw) {
  for (const TensorRun& run : piece.runs) {
    if (piece.keeps_quantized) {
      const int64_t k = piece.pack.k;
      const int64_t count = run.count / k;
      FT_RETURN_IF_ERROR(run.stride == 0
                             ? read_quantized_rows(*run.tensor, run.first / k, count, to, raw)
                             : read_quantized_columns(run, to, raw));
      to += count * quantized_row_bytes(*quantized_form(*run.tensor), k);
      continue;
    }
    FT_RETURN_IF_ERROR(read_any_run(run, piece.dtype, to, raw));
    if (piece.offset != 0) {
      auto* values = reinterpret_cast<float*>(to);
      for (int64_t i = 0; i < run.count; ++i) values[i] += piece.offset;
    }
    to += run.count * static_cast<int64_t>(dtype_size(piece.dtype));
  }
  return {};
}

void WeightStream::enqueue(const WeightPiece& piece, Slot& slot) {
  with_queue([&](Queue& queue) {
    if (piece.pack.weight != nullptr) {
      PackRowsArgs pack = piece.pack;
      pack.rows = slot.pinned;
      pack.scratch = slot.scratch;
      pack_rows(queue, pack);
    } else {
      queue.copy(piece.to, slot.pinned, static_cast<size_t>(piece.num_bytes()));
    }
    queue.record(slot.used, ++slot.num_uses);
  });
}

}  // namespace foretoken
