#include "kernels/attention/cuda/attention_fa3.cuh"

#include "kernels/attention/cuda/attention_fa3_plan.cuh"

namespace foretoken::cuda {
namespace {

__global__ void __launch_bounds__(kFa3PlanThreads, 1)
    fa3_plan_kernel(const __grid_constant__ AttentionArgs args,
                    const __grid_constant__ Fa3Lists lists, int blocks) {
  extern __shared__ __align__(16) uint8_t memory[];
  wait_for_previous();
  const int thread = static_cast<int>(threadIdx.x);
  Fa3Planner{args,
             lists,
             *reinterpret_cast<Fa3Memory*>(memory),
             blocks,
             min(args.counts->num_rows, args.max_rows),
             thread,
             thread % 32}
      .run();
}

// Works of a step, at most: a run has at most one tile that is not full.
int64_t max_works(const AttentionArgs& args) {
  const int64_t tiles = args.max_rows / fa3_tile_rows(args.kv.head_dim);
  const int64_t runs = args.max_rows / (kLongRun + 1);
  return (tiles + runs) * args.num_heads;
}

constexpr int kLists = 7;  // with one entry for each work

int64_t list_words(const AttentionArgs& args) {
  return kLists * max_works(args) + device_traits().num_sms + 1;
}

Fa3Lists lists_behind_workspace(const AttentionArgs& args) {
  const int64_t works = max_works(args);
  auto* at = reinterpret_cast<int32_t*>(args.workspace + args.workspace_floats);
  const auto next = [&] {
    int32_t* list = at;
    at += works;
    return list;
  };
  Fa3Lists lists{};
  for (int32_t** list : {&lists.tile, &lists.head, &lists.first_row, &lists.num_rows,
                         &lists.kv_begin, &lists.kv_len}) {
    *list = next();
  }
  lists.places = reinterpret_cast<uint32_t*>(next());
  lists.bounds = at;
  return lists;
}

bool fits_fa3(const AttentionArgs& args) {
  const KvLayer& kv = args.kv;
  const bool fits_rows = args.max_rows > kLongRun && args.max_rows <= kFa3Rows;
  return fits_rows && kv.dtype == DType::kBF16 && kv.format == KvFormat::kPlain &&
         kv.value_dim == 0 && (kv.head_dim == 64 || kv.head_dim == 128) && args.window == 0 &&
         args.chunk == 0 && args.softcap == 0 && args.kv_begin == 0 && args.sinks == nullptr &&
         !weighs_distances(args) && args.last_seen == nullptr;
}

}  // namespace

bool has_attention_fa3() {
  return is_fa3_built() && device_traits().wgmma && device_traits().num_sms <= kFa3MostBlocks;
}

AttentionArgs with_fa3_room(AttentionArgs args) {
  if (args.family != AttentionFamily::kFlashInfer) return args;
  args.family = AttentionFamily::kFlash;
  if (!has_attention_fa3() || !fits_fa3(args)) return args;
  // A backend's workspace is many times as large; a small one is left to the partial results.
  const int64_t words = list_words(args);
  if (args.workspace == nullptr || args.workspace_floats < 4 * words) return args;
  args.family = AttentionFamily::kFlashInfer;
  args.workspace_floats -= words;
  return args;
}

bool launch_attention_fa3(const AttentionArgs& args, cudaStream_t stream) {
  const Fa3Lists lists = lists_behind_workspace(args);
  if (!args.repeats) {
    constexpr int kBytes = sizeof(Fa3Memory);
    cudaFuncSetAttribute(fa3_plan_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
    launch_kernel(fa3_plan_kernel, 1, kFa3PlanThreads, kBytes, stream, args, lists,
                  device_traits().num_sms);
  }
  return run_fa3(args, lists, stream);
}

#ifndef FORETOKEN_FLASHINFER
bool is_fa3_built() { return false; }
bool run_fa3(const AttentionArgs&, const Fa3Lists&, cudaStream_t) { return false; }
#endif

}  // namespace foretoken::cuda
