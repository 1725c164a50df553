#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <span>

namespace foretoken::cuda {

// Bytes that are at both places afterwards.
struct StagedCopy {
  std::byte* host;  // ordinary memory
  CUdeviceptr device;
  size_t bytes;
};

enum class CopyWay { kToHost, kToDevice };

// Makes all copies, of device `ordinal`, and waits for them. Several threads share the work: each
// copies pieces between ordinary and a little pinned memory, as the bus is many times faster with
// the latter, and touching new pages takes longer than the bus does. Without pinned memory or
// further threads it is slower. The first error ends it, with some bytes copied.
cudaError_t copy_staged(int ordinal, std::span<const StagedCopy> copies, CopyWay way);

}  // namespace foretoken::cuda
