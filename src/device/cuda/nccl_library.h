#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include "base/result.h"

struct ncclComm;

namespace foretoken::cuda {

using NcclComm = ncclComm*;
using NcclResult = int;
inline constexpr NcclResult kNcclSuccess = 0;
inline constexpr int kNcclBytes = 0;  // ncclInt8

struct NcclUniqueId {
  char internal[128];
};

// The functions of NCCL (2.18 or later) that ranks on GPUs use, declared as nccl.h does. The
// library is opened when it is first needed: ranks that reach each other's memory do without it.
struct NcclLibrary {
  NcclResult (*get_unique_id)(NcclUniqueId* id);
  NcclResult (*comm_init_rank)(NcclComm* comm, int size, NcclUniqueId id, int rank);
  NcclResult (*comm_destroy)(NcclComm comm);
  NcclResult (*comm_abort)(NcclComm comm);
  NcclResult (*comm_get_async_error)(NcclComm comm, NcclResult* error);
  NcclResult (*group_start)();
  NcclResult (*group_end)();
  NcclResult (*all_gather)(const void* mine, void* all, size_t count, int type, NcclComm comm,
                           cudaStream_t stream);
  NcclResult (*broadcast)(const void* from, void* to, size_t count, int type, int root,
                          NcclComm comm, cudaStream_t stream);
  NcclResult (*send)(const void* data, size_t count, int type, int peer, NcclComm comm,
                     cudaStream_t stream);
  NcclResult (*receive)(void* data, size_t count, int type, int peer, NcclComm comm,
                        cudaStream_t stream);
  const char* (*get_error_string)(NcclResult result);
  const char* (*get_last_error)(NcclComm comm);
};

// libnccl.so.2, or the file that VLLM_NCCL_SO_PATH names. Unsupported, with the remedy, where it is
// missing. Any thread.
Result<const NcclLibrary*> open_nccl();

}  // namespace foretoken::cuda
