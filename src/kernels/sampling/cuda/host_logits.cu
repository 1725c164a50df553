#include "kernels/sampling/host_logits.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/logits_row.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRowBlocks = 16;  // blocks that share a row
constexpr int kShare = kThreads * kRowBlocks;

// kRowBlocks blocks: one row.
__global__ void __launch_bounds__(kThreads) export_kernel(ExportLogitsArgs args) {
  wait_for_previous();
  let_next_start();
  const int i = blockIdx.y;
  const int thread = blockIdx.x * kThreads + threadIdx.x;
  HostRow row{};
  int slot = 0;
  if (i < live_rows(args.tensors.counts, RowKind::kLogits, args.row_offset, args.max_rows)) {
    const LogitsRow at = logits_row(args.tensors, args.batch.slots, args.row_offset + i);
    const SlotParams& params = args.batch.params[at.slot];
    slot = at.slot;
    if (!at.scored && params.processors != 0) {
      row.processors = params.processors;
      row.choice = params.choice;
      row.prompt_len = params.prompt_len;
      row.num_tokens = min(at.position + 1, args.host.max_len);
    }
  }
  if (thread == 0) args.host.rows[i] = row;
  if (row.processors == 0) return;
  int32_t* history = args.host.history + int64_t{i} * args.host.max_len;
  for (int t = thread; t < row.num_tokens; t += kShare) {
    history[t] = history_id(args.batch, slot, t);
  }
  const int64_t begin = int64_t{i} * args.vocab;
  for (int id = thread; id < args.vocab; id += kShare) {
    args.host.logits[begin + id] = args.logits[begin + id];
  }
}

// The same. The host wrote to its memory since the device last saw it: no cached loads.
__global__ void __launch_bounds__(kThreads) import_kernel(ImportLogitsArgs args) {
  wait_for_previous();
  let_next_start();
  const int i = blockIdx.y;
  if (i >= live_rows(args.counts, RowKind::kLogits, args.row_offset, args.max_rows)) return;
  const volatile uint64_t* processors = &args.host.rows[i].processors;
  if (*processors == 0) return;
  const int64_t begin = int64_t{i} * args.vocab;
#pragma unroll 8
  for (int id = blockIdx.x * kThreads + threadIdx.x; id < args.vocab; id += kShare) {
    args.logits[begin + id] = __ldcv(args.host.logits + begin + id);
  }
}

}  // namespace

void launch_export_logits(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ExportLogitsArgs>(packed);
  launch_kernel(export_kernel, dim3(kRowBlocks, args.max_rows), kThreads, 0, stream, args);
}

void launch_import_logits(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ImportLogitsArgs>(packed);
  launch_kernel(import_kernel, dim3(kRowBlocks, args.max_rows), kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
