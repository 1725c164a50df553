#include "device/cuda/mapped_memory.h"

#include <algorithm>
#include <new>
#include <utility>

#include "device/cuda/staged_copy.h"

namespace foretoken::cuda {
namespace {

constexpr size_t kAlignment = 512;
// Smaller blocks share a range.
constexpr size_t kSharedBelow = size_t{1} << 20;

// What the calling thread takes memory for.
struct Purpose {
  MappedMemory* memory = nullptr;
  MemoryRole role = MemoryRole::kStays;
};
thread_local Purpose purpose;

// All of the process.
struct Instances {
  std::mutex mutex;
  std::vector<MappedMemory*> all;
};

Instances& instances() {
  static auto* const instances = new Instances();
  return *instances;
}

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// Through the runtime, so that nothing links with the driver's library.
template <class Function>
bool find(const char* name, Function& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &found, 10020, cudaEnableDefault, &result);
  function = reinterpret_cast<Function>(found);
  return status == cudaSuccess && result == cudaDriverEntryPointSuccess && found != nullptr;
}

bool find_driver(MappingDriver& driver) {
  return find("cuMemGetAllocationGranularity", driver.granularity) &&
         find("cuMemAddressReserve", driver.reserve) &&
         find("cuMemAddressFree", driver.free_address) && find("cuMemCreate", driver.create) &&
         find("cuMemRelease", driver.release) && find("cuMemMap", driver.map) &&
         find("cuMemUnmap", driver.unmap) && find("cuMemSetAccess", driver.set_access);
}

CUmemLocation location_of(int ordinal) {
  CUmemLocation location{};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = ordinal;
  return location;
}

CUmemAllocationProp properties_of(int ordinal) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = location_of(ordinal);
  return properties;
}

// Pages that nothing has touched; empty: the system has none.
cpu::PageBlock take_pages(size_t bytes) {
  try {
    return cpu::PageBlock(bytes);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

bool is_meant(MemoryRole role, const GivenBack& what) {
  return role == MemoryRole::kBlocks ? what.blocks : what.weights;
}

std::string mib(size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

cudaError_t take_device_memory(void** memory, size_t bytes) {
  if (purpose.memory == nullptr) return cudaMalloc(memory, bytes);
  return purpose.memory->take(memory, bytes, purpose.role);
}

void free_device_memory(void* memory) {
  if (memory == nullptr) return;
  {
    const std::lock_guard lock(instances().mutex);
    for (MappedMemory* each : instances().all) {
      if (each->free(memory)) return;
    }
  }
  cudaFree(memory);
}

Result<std::unique_ptr<MappedMemory>> MappedMemory::make(int ordinal) {
  cudaSetDevice(ordinal);
  MappingDriver driver{};
  size_t granularity = 0;
  const CUmemAllocationProp properties = properties_of(ordinal);
  if (!find_driver(driver) ||
      driver.granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) !=
          CUDA_SUCCESS ||
      granularity == 0) {
    (void)cudaGetLastError();
    return unsupported(
        "this NVIDIA driver or GPU does not map memory by hand, which an engine that sleeps needs; "
        "leave --enable-sleep-mode out");
  }
  return std::make_unique<MappedMemory>(driver, ordinal, granularity);
}

MappedMemory::MappedMemory(const MappingDriver& driver, int ordinal, size_t granularity)
    : driver_(driver), ordinal_(ordinal), granularity_(granularity) {
  const std::lock_guard lock(instances().mutex);
  instances().all.push_back(this);
}

MappedMemory::~MappedMemory() {
  {
    const std::lock_guard lock(instances().mutex);
    std::erase(instances().all, this);
  }
  cudaSetDevice(ordinal_);
  while (!ranges_.empty()) remove(ranges_.begin());
}

MemoryRole MappedMemory::take_for(MemoryRole role) {
  const Purpose wanted{role == MemoryRole::kStays ? nullptr : this, role};
  return std::exchange(purpose, wanted).role;
}

cudaError_t MappedMemory::take(void** memory, size_t bytes, MemoryRole role) {
  if (comes_with_weights(role)) {
    *memory = ledger_.again(bytes);
    if (*memory != nullptr) return cudaSuccess;
    // What is taken beside weights that are taken again is freed before they are all there.
    if (ledger_.is_again()) role = MemoryRole::kKept;
  }
  const std::lock_guard lock(mutex_);
  const auto range = range_for(bytes, role);
  if (range == ranges_.end()) return cudaErrorMemoryAllocation;
  *memory = reinterpret_cast<void*>(range->begin + range->num_used);
  (void)ledger_.note(*memory, bytes, role);
  range->num_used += round_up(std::max<size_t>(bytes, 1), kAlignment);
  ++range->num_blocks;
  blocks_[*memory] = range;
  return cudaSuccess;
}

bool MappedMemory::free(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(memory);
  if (found == blocks_.end()) return false;
  const auto range = found->second;
  if (range->role != MemoryRole::kKept && !ledger_.drop(memory)) return true;
  blocks_.erase(found);
  cudaSetDevice(ordinal_);
  if (--range->num_blocks == 0) remove(range);
  return true;
}

// One with room, or a new one.
MappedMemory::Ranges::iterator MappedMemory::range_for(size_t bytes, MemoryRole role) {
  if (bytes >= kSharedBelow) return add_range(bytes, role);
  const auto open = std::find_if(ranges_.rbegin(), ranges_.rend(), [&](const Range& range) {
    return range.role == role && range.is_mapped && range.num_used + bytes <= range.bytes;
  });
  return open != ranges_.rend() ? std::prev(open.base()) : add_range(granularity_, role);
}

MappedMemory::Ranges::iterator MappedMemory::add_range(size_t bytes, MemoryRole role) {
  Range range;
  range.bytes = round_up(bytes, granularity_);
  range.role = role;
  if (driver_.reserve(&range.begin, range.bytes, 0, 0, 0) != CUDA_SUCCESS) return ranges_.end();
  if (back(range)) return ranges_.insert(ranges_.end(), std::move(range));
  driver_.free_address(range.begin, range.bytes);
  return ranges_.end();
}

bool MappedMemory::back(Range& range) {
  const CUmemAllocationProp properties = properties_of(ordinal_);
  if (driver_.create(&range.handle, range.bytes, &properties, 0) != CUDA_SUCCESS) return false;
  CUmemAccessDesc access{};
  access.location = location_of(ordinal_);
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (driver_.map(range.begin, range.bytes, 0, range.handle, 0) == CUDA_SUCCESS) {
    range.is_mapped = true;
    if (driver_.set_access(range.begin, range.bytes, &access, 1) == CUDA_SUCCESS) return true;
  }
  unback(range);
  return false;
}

void MappedMemory::unback(Range& range) {
  if (range.is_mapped) driver_.unmap(range.begin, range.bytes);
  range.is_mapped = false;
  driver_.release(range.handle);
}

void MappedMemory::remove(Ranges::iterator range) {
  if (range->is_mapped) unback(*range);
  driver_.free_address(range->begin, range->bytes);
  ranges_.erase(range);
}

Status MappedMemory::copy_contents(const GivenBack& what) {
  size_t wanted = 0;
  std::vector<StagedCopy> copies;
  for (Range& range : ranges_) {
    const bool keeps = range.role == MemoryRole::kKept ||
                       (range.role == MemoryRole::kWeights && what.keeps_weights);
    if (!keeps || !range.is_mapped || !is_meant(range.role, what)) continue;
    wanted += range.bytes;
    range.contents = take_pages(range.bytes);
    if (range.contents.data() == nullptr) {
      return resource_exhausted("the host has no memory for the first " + mib(wanted) +
                                " of an engine that is to sleep; use level 2, which keeps no "
                                "weights, or end other programs");
    }
    copies.push_back({range.contents.data(), range.begin, range.bytes});
  }
  const cudaError_t error = copy_staged(ordinal_, copies, CopyWay::kToHost);
  if (error == cudaSuccess) return {};
  return internal_error(std::string("bringing weights to host memory: ") +
                        cudaGetErrorString(error));
}

// Brings what is to be kept to host memory, all of it or nothing.
Status MappedMemory::keep_contents(const GivenBack& what) {
  const Status copied = copy_contents(what);
  if (copied.ok()) return copied;
  for (Range& range : ranges_) {
    if (range.is_mapped) range.contents = {};
  }
  return copied;
}

Result<int64_t> MappedMemory::give_back(const GivenBack& what) {
  const std::lock_guard lock(mutex_);
  cudaSetDevice(ordinal_);
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) return internal_error(cudaGetErrorString(error));
  FT_RETURN_IF_ERROR(keep_contents(what));
  size_t bytes = 0;
  for (Range& range : ranges_) {
    if (!is_meant(range.role, what)) continue;
    if (range.role == MemoryRole::kWeights && !what.keeps_weights) range.contents = {};
    if (!range.is_mapped) continue;
    unback(range);
    bytes += range.bytes;
  }
  return static_cast<int64_t>(bytes);
}

cudaError_t MappedMemory::fill(const std::vector<Range*>& ranges) const {
  std::vector<StagedCopy> copies;
  for (const Range* range : ranges) {
    if (range->contents.data() != nullptr) {
      copies.push_back({range->contents.data(), range->begin, range->bytes});
      continue;
    }
    const cudaError_t error = cudaMemset(reinterpret_cast<void*>(range->begin), 0, range->bytes);
    if (error != cudaSuccess) return error;
  }
  const cudaError_t error = copy_staged(ordinal_, copies, CopyWay::kToDevice);
  return error == cudaSuccess ? cudaDeviceSynchronize() : error;
}

Status MappedMemory::bring_back(MemoryRole role) {
  const std::lock_guard lock(mutex_);
  cudaSetDevice(ordinal_);
  std::vector<Range*> backed;
  size_t wanted = 0;
  bool all = true;
  for (Range& range : ranges_) {
    const bool is_wanted = (range.role == MemoryRole::kBlocks) == (role == MemoryRole::kBlocks);
    if (range.is_mapped || !is_wanted) continue;
    wanted += range.bytes;
    all = all && back(range);
    if (range.is_mapped) backed.push_back(&range);
  }
  const cudaError_t error = all ? fill(backed) : cudaSuccess;
  if (all && error == cudaSuccess) {
    for (Range* range : backed) range->contents = {};
    return {};
  }
  for (Range* range : backed) unback(*range);
  if (error != cudaSuccess) {
    return internal_error(std::string("bringing memory back: ") + cudaGetErrorString(error));
  }
  size_t free = 0, total = 0;
  (void)cudaMemGetInfo(&free, &total);
  return resource_exhausted("the GPU has " + mib(free) + " free of " + mib(wanted) +
                            " that the engine wakes up with; wake it again once other programs "
                            "have given theirs back");
}

}  // namespace foretoken::cuda
