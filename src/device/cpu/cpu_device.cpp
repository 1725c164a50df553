#include "device/cpu/cpu_device.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>

#include "device/cpu/cpu_communicator.h"
#include "device/cpu/cpu_isa.h"
#include "device/cpu/cpu_queue.h"
#include "device/cpu/cpu_quota.h"
#include "device/cpu/cpu_thread.h"
#include "device/cpu/host_memory.h"
#include "device/cpu/page_block.h"
#include "device/cpu/resident_pages.h"
#include "device/memory_ledger.h"
#include "device/resident_memory.h"

namespace foretoken::cpu {
namespace {

class CpuDevice final : public Device {
 public:
  CpuDevice(const CpuKernels& kernels, int num_threads)
      : kernels_(kernels), num_threads_(num_threads) {}

  DeviceType type() const override { return DeviceType::kCpu; }
  std::string name() const override {
    return "cpu (" + std::to_string(num_threads_) + " threads, " + cpu_isa_name(cpu_isa()) + ")";
  }
  int num_workers() const override { return num_threads_; }
  int64_t free_memory() const override { return host_memory().free; }
  int64_t total_memory() const override { return host_memory().total; }
  void* allocate(size_t bytes, MemoryKind kind) override;
  void deallocate(void* pointer, MemoryKind kind) override;
  void mark_touched() override;
  void give_back_touched() override;
  // Weights are in host memory, where level 1 brings those of other devices.
  Status allow_sleep() override {
    may_sleep_ = true;
    return {};
  }
  MemoryRole take_for(MemoryRole role) override {
    if (!may_sleep_) return MemoryRole::kStays;
    return make_pages_for({role == MemoryRole::kStays ? nullptr : &ledger_, role}).role;
  }
  Result<int64_t> give_back(const GivenBack& what) override;
  void begin_again() override { ledger_.begin_again(); }
  bool end_again() override { return ledger_.end_again(); }
  void prefer_small_pages(void* memory, size_t bytes) override;
  Result<std::unique_ptr<Queue>> make_queue() override {
    return std::unique_ptr<Queue>(std::make_unique<CpuQueue>(kernels_, num_threads_));
  }
  Result<std::unique_ptr<Communicator>> make_communicator(
      group::RankLink& link, const CommunicatorOptions& options) override {
    return std::unique_ptr<Communicator>(
        std::make_unique<CpuCommunicator>(link, options.max_row_bytes));
  }
  void* make_weight(int64_t n, int64_t k, DType dtype, WeightOrder order,
                    int64_t unit_rows) override {
    return kernels_.make_weight(n, k, dtype, order, unit_rows);
  }
  int64_t weight_slice_rows(int64_t n, int64_t k, DType dtype, WeightOrder order,
                            int64_t unit_rows) const override {
    return kernels_.weight_slice_rows(n, k, dtype, order, unit_rows);
  }
  void* pack_weight(std::span<const WeightPart> parts, int64_t k, DType dtype, WeightOrder order,
                    int64_t unit_rows) override {
    return kernels_.pack_weight(parts, k, dtype, order, unit_rows);
  }
  void free_weight(void* weight) override { kernels_.free_weight(weight); }
  RowTable rows_of_weight(const void* weight) const override {
    return kernels_.rows_of_weight(weight);
  }
  int64_t quantized_weight_bytes(const void* weight) const override {
    return kernels_.quantized_weight_bytes(weight);
  }
  bool keeps_quantized(const QuantForm& form, int64_t k, DType /*dtype*/) const override {
    return kernels_.keeps_quantized(form, k);
  }
  // What round_rows leaves is of the type of x, and such weights are widened.
  bool multiplies_rounded(const QuantForm& form, int64_t k, DType /*dtype*/) const override {
    return takes_rounded_rows(form) && fits_row(form, k);
  }
  QuantizedWeight make_quantized_weight(std::span<const QuantizedPart> parts, int64_t k,
                                        DType dtype, WeightOrder order,
                                        int64_t unit_rows) override {
    return kernels_.make_quantized_weight(parts, k, dtype, order, unit_rows);
  }

 private:
  const CpuKernels kernels_;
  const int num_threads_;
  bool may_sleep_ = false;
  MemoryLedger ledger_;  // before the blocks, which are noted there
  std::mutex mutex_;
  std::unordered_multimap<void*, PageBlock> blocks_;  // one for each time that one was taken
  std::unordered_map<void*, ResidentPages> marks_;
};

// What steps write is used from its front on, often only there: below this size the one huge page
// that it would have costs more than it brings.
constexpr size_t kHugeFrom = 2 * PageBlock::kHugePage;
// Smaller ones hold counters and the like, which are to stay.
constexpr size_t kLeastGivenBack = size_t{64} << 10;

// What is pinned on other devices is host memory there, too, and stays.
class StayingPages {
 public:
  explicit StayingPages(bool stays) : stays_(stays) {
    if (stays_) before_ = make_pages_for({});
  }
  ~StayingPages() {
    if (stays_) make_pages_for(before_);
  }
  StayingPages(const StayingPages&) = delete;
  StayingPages& operator=(const StayingPages&) = delete;

 private:
  const bool stays_;
  PagePurpose before_;
};

void* CpuDevice::allocate(size_t bytes, MemoryKind kind) {
  if (bytes == 0) return nullptr;
  try {
    const StayingPages scope(kind == MemoryKind::kPinned);
    PageBlock block(bytes);
    void* memory = block.data();
    if (bytes < kHugeFrom) prefer_plain_pages(block.data(), bytes);
    std::lock_guard lock(mutex_);
    blocks_.emplace(memory, std::move(block));
    return memory;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void CpuDevice::deallocate(void* pointer, MemoryKind) {
  if (pointer == nullptr) return;
  std::lock_guard lock(mutex_);
  const auto found = blocks_.find(pointer);
  FT_CHECK(found != blocks_.end());
  blocks_.erase(found);
  marks_.erase(pointer);
}

void CpuDevice::mark_touched() {
  std::lock_guard lock(mutex_);
  marks_.clear();
  for (const auto& [memory, block] : blocks_) {
    if (block.size() < kLeastGivenBack) continue;
    marks_.emplace(memory, ResidentPages::of(block.data(), block.size()));
  }
}

void CpuDevice::give_back_touched() {
  std::lock_guard lock(mutex_);
  for (const auto& [memory, pages] : marks_) pages.give_back_others();
  marks_.clear();
}

// The system lends most pages of weights and blocks at their first touch alone.
Result<int64_t> CpuDevice::give_back(const GivenBack& what) {
  const int64_t before = resident_bytes();
  ledger_.for_each([&](void* memory, size_t bytes, MemoryRole role) {
    if (role == MemoryRole::kBlocks ? !what.blocks : !what.weights) return;
    if (role == MemoryRole::kWeights && what.keeps_weights) return;
    clear_pages(static_cast<std::byte*>(memory), bytes);
  });
  return std::max<int64_t>(before - resident_bytes(), 0);
}

void CpuDevice::prefer_small_pages(void* memory, size_t bytes) {
  auto* const begin = static_cast<std::byte*>(memory);
  std::lock_guard lock(mutex_);
  FT_CHECK(std::any_of(blocks_.begin(), blocks_.end(), [&](const auto& entry) {
    const PageBlock& block = entry.second;
    return begin >= block.data() && begin + bytes <= block.data() + block.size();
  }));
  prefer_plain_pages(begin, bytes);
}

}  // namespace

Result<std::unique_ptr<Device>> open_cpu_device(const CpuKernels& kernels, int num_threads) {
  if (num_threads < 0 || num_threads > 1024) {
    return invalid_argument("--cpu-threads " + std::to_string(num_threads) +
                            ": use 0 (physical cores) to 1024");
  }
  const int threads = num_threads > 0 ? num_threads : usable_cores();
  return std::unique_ptr<Device>(std::make_unique<CpuDevice>(kernels, threads));
}

}  // namespace foretoken::cpu
