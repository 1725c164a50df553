#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/profiler_ranges.h"
#include "base/quantized_rows.h"
#include "base/result.h"
#include "device/communicator.h"
#include "device/dtype.h"
#include "device/queue.h"
#include "device/row_table.h"
#include "group/rank_link.h"

namespace foretoken {

class AttentionFamilies;

enum class DeviceType : uint8_t { kCpu, kCuda };

// kDevice: fast for ops; on CUDA the host must not touch it. kPinned: host memory that ops read
// and write directly.
enum class MemoryKind : uint8_t { kDevice, kPinned };

// What memory of a device holds, which says what becomes of it while the device's engine sleeps.
// kStays: it is not given back. kKept: its contents are kept. kWeights: they are kept, or can be
// read from files again. kScratch: taken beside weights, of use within a step alone. kBlocks: they
// are of no use afterwards.
enum class MemoryRole : uint8_t { kStays, kKept, kWeights, kScratch, kBlocks };

// Whether loading weights again takes it again.
inline bool comes_with_weights(MemoryRole role) {
  return role == MemoryRole::kWeights || role == MemoryRole::kScratch;
}

// What a device gives back of its memory: that of kBlocks, or all other that is not kStays; and
// whether contents of kWeights are kept.
struct GivenBack {
  bool weights = true;
  bool blocks = true;
  bool keeps_weights = true;
};

// Rows of a weight matrix in host memory, row-major [num_rows, k]; several parts are stacked
// (for example q, k and v).
struct WeightPart {
  const void* data;
  int64_t num_rows;
};

// Rows of a weight matrix that stay quantised.
struct QuantizedPart {
  QuantForm form;
  int64_t num_rows;
};

// A handle of a weight (null: memory was short), and the rows that are packed together.
struct QuantizedWeight {
  void* handle;
  int64_t slice_rows;
};

// How the rows of a packed matrix lie. kGateUp: the matrix is [gate; up] of equal size, and the
// gemm op finds row i of both together (GemmArgs::gated).
enum class WeightOrder : uint8_t { kPlain, kGateUp };

// The root of a device plug-in: owns memory and makes queues. Thread-safe. It outlives everything
// made from it.
class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceType type() const = 0;
  // For example "cpu (2 threads, avx512_bf16)" or "NVIDIA H200".
  virtual std::string name() const = 0;
  // Number of workspaces that an op may use at once: pool threads on CPU, 1 on CUDA.
  virtual int num_workers() const = 0;
  // Bytes that can still be allocated, as the system reports them now.
  virtual int64_t free_memory() const = 0;
  // Bytes of memory that the device has.
  virtual int64_t total_memory() const = 0;

  // Zero-filled memory aligned to 256 bytes, or nullptr when there is none left.
  virtual void* allocate(size_t bytes, MemoryKind kind) = 0;
  virtual void deallocate(void* pointer, MemoryKind kind) = 0;

  // Large allocations that no op of any queue uses meanwhile: marks what of them is in memory, and
  // gives back to the system what came in since then, which reads as zeros afterwards. For memory
  // that was only tried out. Nothing where memory is taken when it is allocated.
  virtual void mark_touched() {}
  virtual void give_back_touched() {}

  // Asks that memory of `allocate` be taken piece by piece as it is touched, in the smallest pieces
  // that the system has: for what is rarely used to the end. Nothing where memory is taken when it
  // is allocated.
  virtual void prefer_small_pages(void* /*memory*/, size_t /*bytes*/) {}

  // Before anything is taken: memory can be given back from now on. Unsupported where addresses do
  // not outlive their memory.
  virtual Status allow_sleep() { return unsupported(name() + " cannot give back its memory"); }
  // What the calling thread takes device memory and weights for from now on; what it did before.
  // Nothing but kStays without allow_sleep.
  virtual MemoryRole take_for(MemoryRole) { return MemoryRole::kStays; }
  // While nothing uses the device: gives memory that is not kStays back to the system, but
  // addresses stay. Contents of kKept, and of kWeights with `keeps_weights`, go to host memory, if
  // they are not there anyway. Without it contents of kWeights that were kept before are lost, too.
  // Returns the bytes that are free then. ResourceExhausted, and nothing has changed: host memory
  // is short.
  virtual Result<int64_t> give_back(const GivenBack&) { return int64_t{0}; }
  // The memory of kBlocks, or else all other, is there again, with the contents that were kept,
  // otherwise with zeros. ResourceExhausted, and nothing has changed: others have the memory.
  virtual Status bring_back(MemoryRole) { return {}; }
  // Between the two calls, what the calling thread takes for kWeights and kScratch lies where it
  // lay when the device took as much in the same order for the first time, and is to be freed once
  // more. False: it was not the same.
  virtual void begin_again() {}
  virtual bool end_again() { return true; }

  virtual Result<std::unique_ptr<Queue>> make_queue() = 0;

  // What the collective ops of this device's queue meet the other ranks with. All ranks of `link`
  // call it at the same time, on devices of one type, with the same options. Blocks until all are
  // there. The link outlives the communicator and is used by nothing else from then on.
  virtual Result<std::unique_ptr<Communicator>> make_communicator(group::RankLink&,
                                                                  const CommunicatorOptions&) {
    return unsupported(name() + " cannot work together with other ranks; use one rank");
  }

  // Ranges in the profiler of the device's vendor (NVTX). Queues made later open one around each op
  // that they enqueue. Null functions where there are none, and, unless `always`, where no profiler
  // is attached.
  virtual ProfilerRanges use_profiler_ranges(bool) { return {}; }

  // Room for a weight matrix [n, k] of type `dtype` in the layout that the gemm op of this device
  // reads; ops pack_rows fill it. The handle goes into GemmArgs::weight and is released with
  // free_weight. Start-up only; nullptr when memory is short. With unit_rows > 0 the matrix is made
  // of matrices of so many rows each, those of experts (by kGateUp of as many gates and as many
  // ups), a multiple of 16: rows of two are never packed together.
  virtual void* make_weight(int64_t n, int64_t k, DType dtype, WeightOrder order,
                            int64_t unit_rows = 0) = 0;
  // Rows that are packed together, even by kGateUp (kernels/gemm/pack_rows.h).
  virtual int64_t weight_slice_rows(int64_t n, int64_t k, DType dtype, WeightOrder order,
                                    int64_t unit_rows = 0) const = 0;
  // make_weight, filled from a matrix in host memory (n = sum of the parts' rows). Blocks until
  // done.
  virtual void* pack_weight(std::span<const WeightPart> parts, int64_t k, DType dtype,
                            WeightOrder order = WeightOrder::kPlain, int64_t unit_rows = 0) = 0;
  virtual void free_weight(void* weight) = 0;
  // The rows of a weight where they lie, as long as it stays; none where ops cannot look them up
  // there.
  virtual RowTable rows_of_weight(const void* /*weight*/) const { return {}; }
  // Rows with which a product of so many outputs occupies the whole device once: of many rows,
  // a few more than a multiple of these take up to as long as twice as many. 0: each row takes as
  // long as another.
  virtual int64_t rows_of_a_wave(int64_t /*num_outputs*/) const { return 0; }
  // Bytes that a weight takes where they are not those of its elements: it stays quantised. 0: they
  // are.
  virtual int64_t quantized_weight_bytes(const void*) const { return 0; }

  // Whether the gemm op of this device multiplies rows of x of type `dtype` with rows of k elements
  // that stay quantised so. Others are to be widened.
  virtual bool keeps_quantized(const QuantForm&, int64_t /*k*/,
                               DType /*dtype*/ = DType::kBF16) const {
    return false;
  }
  // Whether the gemm op, and that of experts, multiplies rows that round_rows has rounded with rows
  // of k elements of a form with rounds_rows, kept so or widened.
  virtual bool multiplies_rounded(const QuantForm& form, int64_t k, DType dtype) const {
    return keeps_quantized(form, k, dtype);
  }
  // Whether one weight can be made of parts, each of a form that the device keeps; otherwise they
  // are to be widened. unit_rows as of make_weight.
  virtual bool keeps_together(std::span<const QuantizedPart>, int64_t /*unit_rows*/) const {
    return true;
  }
  // As make_weight, of stacked parts that are quantised in forms that the device keeps together; x
  // is of type `dtype`. pack_rows fills it from rows as base/quantized_rows.h lays them out.
  virtual QuantizedWeight make_quantized_weight(std::span<const QuantizedPart>, int64_t, DType,
                                                WeightOrder, int64_t /*unit_rows*/ = 0) {
    return {nullptr, 0};
  }

  // What it has beside the one implementation of attention that each device has; null: nothing.
  // Callers ask has_attention and hold_flex (device/attention_families.h).
  virtual const AttentionFamilies* attention_families() const { return nullptr; }
};

// Opens libforetoken_cuda.so beside the executable, on LD_LIBRARY_PATH or at
// FORETOKEN_CUDA_PLUGIN. Unsupported, with the remedy, where the plug-in, a driver or a device is
// missing.
Result<std::unique_ptr<Device>> open_cuda_device(int ordinal);

}  // namespace foretoken
