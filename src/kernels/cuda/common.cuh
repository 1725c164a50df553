#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "device/dtype.h"
#include "kernels/live_rows.h"

namespace foretoken::cuda {

// Programmatic dependent launch: a kernel may become resident as soon as every block of the kernel
// before it is, long before that one ends. So several kernels of a queue wait on the device, and a
// product fetches its weight meanwhile. Every kernel calls `wait_for_previous` before it touches
// memory that another op writes: the kernel before it, and so every earlier one, has then ended.
// `let_next_start` allows the next kernel to become resident; wait_for_previous begins with it.
// A kernel that lets the next start only after `wait_for_all_before` promises it, and all that
// follow, that every kernel before this one has ended: they may read what those wrote at once.
__device__ inline void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ inline void wait_for_all_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ inline void wait_for_previous() {
  let_next_start();
  wait_for_all_before();
}
// Or with that promise, which every thread of the kernel that waits then gives.
__device__ inline void wait_for_previous(bool promises) {
  if (!promises) let_next_start();
  wait_for_all_before();
  let_next_start();
}

// The device's clock; it moves in steps of up to about a microsecond.
__device__ inline int64_t global_nanoseconds() {
  int64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// Properties of the current device; those of all are read once.
struct DeviceTraits {
  int num_sms;
  bool dependent_launch;  // programmatic dependent launch
  bool clusters;          // thread block clusters
  bool wgmma;             // Hopper's asynchronous products
  bool mps;               // kernels of other processes may run at the same time
};
const DeviceTraits& device_traits();

// Launches `kernel(args...)` in clusters of `cluster` blocks along x, with programmatic dependent
// launch where the device knows it. Errors are left to cudaGetLastError.
template <class... Params, class... Args>
void launch_cluster(void (*kernel)(Params...), dim3 grid, int cluster, dim3 block,
                    size_t shared_bytes, cudaStream_t stream, const Args&... args) {
  cudaLaunchAttribute attributes[2];
  int count = 0;
  if (device_traits().dependent_launch) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = count;
  cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...);
}

// The same without clusters.
template <class... Params, class... Args>
void launch_kernel(void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared_bytes,
                   cudaStream_t stream, const Args&... args) {
  launch_cluster(kernel, grid, 1, block, shared_bytes, stream, args...);
}

// Lets the kernel run beside others that take much shared memory: a multiprocessor divides its
// memory anew only when it is idle. Errors are left to cudaGetLastError.
template <class Kernel>
void prefer_shared_memory(Kernel kernel) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                       cudaSharedmemCarveoutMaxShared);
}

template <class T>
const T& op_args(const void* args) {
  return *static_cast<const T*>(args);
}

__host__ __device__ constexpr int ceil_div(int64_t a, int64_t b) {
  return static_cast<int>((a + b - 1) / b);
}

__device__ inline int live_rows(const StepCounts* counts, RowKind kind, int row_offset,
                                int max_rows) {
  return live_rows_of(*counts, kind, row_offset, max_rows);
}

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline float to_float(__half value) { return __half2float(value); }

template <class T>
__device__ inline T from_float(float value) {
  if constexpr (sizeof(T) == 2) {
    return __float2bfloat16_rn(value);
  } else {
    return value;
  }
}

// Token `position` of a slot's history, through its block table.
__device__ inline int32_t* token_at(const BatchState& batch, int slot, int position) {
  const int index = position / batch.block_size;
  const int block =
      index < batch.max_blocks ? batch.block_tables[int64_t{slot} * batch.max_blocks + index] : 0;
  return batch.token_pages + int64_t{block} * batch.block_size + position % batch.block_size;
}

// Stores a token and raises the page header's count to cover it.
__device__ inline void append_token(const BatchState& batch, int slot, int position, int32_t id) {
  int32_t* place = token_at(batch, slot, position);
  *place = id;
  const int64_t index = place - batch.token_pages;
  atomicMax(&batch.page_headers[index / batch.block_size].count,
            static_cast<int32_t>(index % batch.block_size) + 1);
}

}  // namespace foretoken::cuda
