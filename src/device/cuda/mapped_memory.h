#pragma once
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "device/cpu/page_block.h"
#include "device/memory_ledger.h"

namespace foretoken::cuda {

// cudaMalloc and cudaFree of what the device keeps; memory of a role that lets it sleep is mapped
// (MappedMemory).
cudaError_t take_device_memory(void** memory, size_t bytes);
void free_device_memory(void* memory);

// The driver's functions that map memory by hand.
struct MappingDriver {
  PFN_cuMemGetAllocationGranularity_v10020 granularity;
  PFN_cuMemAddressReserve_v10020 reserve;
  PFN_cuMemAddressFree_v10020 free_address;
  PFN_cuMemCreate_v10020 create;
  PFN_cuMemRelease_v10020 release;
  PFN_cuMemMap_v10020 map;
  PFN_cuMemUnmap_v10020 unmap;
  PFN_cuMemSetAccess_v10020 set_access;
};

// Device memory whose addresses outlive it: ranges of addresses that are backed by memory while the
// engine is awake. Recorded graphs and arguments of ops hold on. Thread-safe; give_back and
// bring_back while nothing uses the device.
class MappedMemory {
 public:
  static Result<std::unique_ptr<MappedMemory>> make(int ordinal);
  MappedMemory(const MappingDriver& driver, int ordinal, size_t granularity);
  ~MappedMemory();

  // As of Device.
  MemoryRole take_for(MemoryRole role);
  Result<int64_t> give_back(const GivenBack& what);
  Status bring_back(MemoryRole role);
  MemoryLedger& ledger() { return ledger_; }

  // Aligned to 512 bytes. cudaErrorMemoryAllocation: there is none left.
  cudaError_t take(void** memory, size_t bytes, MemoryRole role);
  // False: it is not from here.
  bool free(void* memory);

 private:
  // Addresses with one piece of memory behind them.
  struct Range {
    CUdeviceptr begin = 0;
    size_t bytes = 0;
    MemoryRole role = MemoryRole::kKept;
    CUmemGenericAllocationHandle handle = 0;
    bool is_mapped = false;
    cpu::PageBlock contents;  // in host memory; empty: they are lost, or in place
    size_t num_used = 0;      // bytes from the front on
    int num_blocks = 0;
  };
  using Ranges = std::list<Range>;

  Ranges::iterator add_range(size_t bytes, MemoryRole role);
  Ranges::iterator range_for(size_t bytes, MemoryRole role);
  bool back(Range& range);
  void unback(Range& range);
  void remove(Ranges::iterator range);
  Status copy_contents(const GivenBack& what);
  Status keep_contents(const GivenBack& what);
  cudaError_t fill(const std::vector<Range*>& ranges) const;

  const MappingDriver driver_;
  const int ordinal_;
  const size_t granularity_;
  MemoryLedger ledger_;
  std::mutex mutex_;
  Ranges ranges_;
  std::unordered_map<void*, Ranges::iterator> blocks_;
};

}  // namespace foretoken::cuda
