#pragma once
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/column_range.h"
#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "kernels/gemm/pack_rows.h"
#include "model/files/containers/safetensors.h"

namespace foretoken {

// Elements of a tensor of a file that follow one another.
// A run of columns: rows of `row_elements` elements, whose beginnings lie `stride` apart; with
// several pieces, those of ColumnRange.
// A turned run: columns of a tensor whose rows lie `stride` apart, each column a row of
// `row_elements` elements.
struct TensorRun {
  const TensorView* tensor;
  int64_t first;
  int64_t count;
  int64_t row_elements = 0;  // 0: all follow one another
  int64_t stride = 0;
  bool turned = false;
  int64_t pieces = 1;
  int64_t apart = 0;

  // Of a run of columns, those of the tensor.
  ColumnRange columns() const { return {stride, first % stride, row_elements, pieces, apart}; }
};

// What is read at once: runs, one after the other, as `dtype` plus `offset`, and where they go.
struct WeightPiece {
  std::vector<TensorRun> runs;
  DType dtype = DType::kF32;  // kF32, kBF16 or, of halves that are not packed, kF16
  float offset = 0;           // only with kF32
  void* to = nullptr;         // device memory, or
  PackRowsArgs pack;          // without rows and scratch, where `weight` is not null
  // The runs are whole rows of `pack` and stay quantised (model/files/forms/quantized_tensor.h).
  bool keeps_quantized = false;
  int64_t counted_bytes = 0;  // what bytes_done counts it as

  int64_t num_bytes() const;
};

struct WeightStreamConfig {
  int num_readers = 1;
  int64_t piece_bytes = int64_t{4} << 20;  // of most pieces; larger ones take more memory
};

// Threads for weights of that size on this machine.
WeightStreamConfig weight_stream_config(int64_t total_bytes);

// Brings pieces of files to the device. Several threads read and convert into pinned memory, two
// pieces each; copies and packing run on the queue meanwhile. Used by one thread.
class WeightStream {
 public:
  // `cancelled` may be null.
  WeightStream(Device& device, Queue& queue, const WeightStreamConfig& config,
               const std::atomic<bool>* cancelled);
  ~WeightStream() { stop(); }
  WeightStream(const WeightStream&) = delete;
  WeightStream& operator=(const WeightStream&) = delete;

  // The tensors, and what the piece goes to, stay until finish or stop. An error is that of an
  // earlier piece: a file that cannot be read or ends early, memory that is short, a failed queue,
  // or Aborted when cancelled.
  Status add(WeightPiece piece);
  // Calls enqueue(queue) between pieces.
  template <class Enqueue>
  void with_queue(Enqueue&& enqueue) {
    std::lock_guard lock(queue_mutex_);
    enqueue(queue_);
  }
  // Waits until everything is on the device and calls `waiting` now and then; the first error.
  Status finish(const std::function<void()>& waiting);
  // Gives up what has not begun and waits for the rest; further pieces get an error.
  void stop();
  // Of the pieces that have been read.
  int64_t bytes_done() const { return bytes_done_.load(std::memory_order_relaxed); }
  int64_t piece_bytes() const { return config_.piece_bytes; }

 private:
  // Where a reader puts a piece.
  struct Slot {
    std::byte* pinned = nullptr;
    void* scratch = nullptr;  // device memory of the same size
    int64_t num_bytes = 0;
    Event used;  // how many of the uses the queue is done with
    uint64_t num_uses = 0;
  };
  struct Reader {
    explicit Reader(Device& device)
        : pinned(device, MemoryKind::kPinned), scratch(device, MemoryKind::kDevice) {}
    Arena pinned;
    Arena scratch;
    Slot slots[2];
    std::vector<std::byte> raw;  // of a type that is converted
    std::thread thread;
  };

  void reader_main(Reader& reader);
  bool next_piece(WeightPiece* piece);
  Status bring(const WeightPiece& piece, Reader& reader, Slot& slot);
  Status wait_until_free(const Slot& slot);
  static Status make_room(Reader& reader, Slot& slot, int64_t bytes);
  static Status read(const WeightPiece& piece, std::byte* to, std::vector<std::byte>& raw);
  void enqueue(const WeightPiece& piece, Slot& slot);
  void fail(Status status);
  Status settle(const std::function<void()>& waiting);

  Device& device_;
  Queue& queue_;
  const WeightStreamConfig config_;
  const std::atomic<bool>* cancelled_;
  std::atomic<int64_t> bytes_done_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex queue_mutex_;

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<WeightPiece> pieces_;
  bool closed_ = false;
  size_t num_running_ = 0;
  Status error_;
  std::vector<std::unique_ptr<Reader>> readers_;
};

}  // namespace foretoken
