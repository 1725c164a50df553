#include "kernels/attention/cuda/library/attention_library.cuh"

#include <algorithm>

#include "kernels/attention/cuda/library/library_plan.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kCutlassQueries = 128;  // query heads that CUTLASS's kernel takes, no more or fewer

[[maybe_unused]] bool is_blackwell() {
  int device = 0, major = 0, minor = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  return major == 10 && minor == 0;
}

bool takes_op(const AttentionArgs& args) {
  const KvLayer& kv = args.kv;
  const bool fits_latents = kv.dtype == DType::kBF16 && kv.format == KvFormat::kPlain &&
                            kv.head_dim == kLibraryDim && kv.value_dim == kLibraryValues &&
                            kv.num_kv_heads == 1 && kv.context_size == 1;
  const bool sees_all =
      args.window == 0 && args.chunk == 0 && args.kv_begin == 0 && args.last_seen == nullptr;
  const bool is_plain = args.softcap == 0 && args.sinks == nullptr && args.slopes == nullptr &&
                        args.states == nullptr && args.flex == nullptr;
  if (!fits_latents || !sees_all || !is_plain || args.workspace == nullptr) return false;
  if (args.max_rows > kLibraryRows || args.num_heads > kCutlassQueries) return false;
  return args.family != AttentionFamily::kFlashMla || kv.block_size == kLibraryUnit;
}

// Takes pieces of the workspace, of multiples of 16 floats.
class RoomTaker {
 public:
  explicit RoomTaker(const AttentionArgs& args)
      : at_(args.workspace), left_(args.workspace_floats) {}

  float* take(int64_t floats) {
    const int64_t rounded = (floats + 15) / 16 * 16;
    float* taken = at_;
    at_ += rounded;
    left_ -= rounded;
    return taken;
  }
  int32_t* take_ints(int64_t count) { return reinterpret_cast<int32_t*>(take(count)); }
  __nv_bfloat16* take_halves(int64_t count) {
    return reinterpret_cast<__nv_bfloat16*>(take((count + 1) / 2));
  }
  int64_t left() const { return left_; }

 private:
  float* at_;
  int64_t left_;
};

void take_lists(RoomTaker& taker, int64_t rows, LibraryRoom& room) {
  const LibraryShape& shape = room.shape;
  LibraryLists& lists = room.lists;
  lists.num_tiles = taker.take_ints(1);
  for (int32_t** list :
       {&lists.first_row, &lists.kv_len, &lists.num_works, &lists.place, &lists.tile_of_row}) {
    *list = taker.take_ints(rows + 1);
  }
  const int64_t blocks = int64_t{shape.chunks} * shape.parts;
  lists.bounds = taker.take_ints(blocks + 1);
  lists.zeros = taker.take_ints(blocks);
  const int64_t works = shape.chunks * (rows + shape.parts);
  for (int32_t** list :
       {&lists.work_tile, &lists.work_first, &lists.work_rows, &lists.work_pages, &lists.work_len,
        &lists.work_query, &lists.work_begin, &lists.work_end, &lists.work_place}) {
    *list = taker.take_ints(works);
  }
}

// Partial results; as many parts as there is room for.
void take_partials(RoomTaker& taker, LibraryRoom& room, int64_t kept_floats) {
  LibraryShape& shape = room.shape;
  LibraryPartials& partials = room.partials;
  const int64_t rows = int64_t{partials.rows} * ceil_div(shape.queries, partials.rows);
  const int64_t row_floats = (partials.are_floats ? kLibraryValues : kLibraryValues / 2) + 1;
  const int64_t places = (taker.left() - kept_floats - 64) / (rows * row_floats);
  shape.parts = static_cast<int>(std::min<int64_t>(shape.parts, places / 2));
  if (shape.parts < 1) return;
  shape.max_places = 2 * shape.parts;
  const int64_t all = shape.max_places * rows;
  partials.values = taker.take(all * (row_floats - 1));
  partials.sums = taker.take(all);
}

LibraryShape shape_of(const AttentionArgs& args) {
  LibraryShape shape{};
  shape.tokens = args.family == AttentionFamily::kCutlassMla
                     ? 1
                     : std::max(1, kLibraryQueries / args.num_heads);
  shape.queries = shape.tokens * args.num_heads;
  shape.chunks = ceil_div(shape.queries, kLibraryQueries);
  shape.parts = std::max(1, device_traits().num_sms / shape.chunks);
  if (args.family == AttentionFamily::kCutlassMla) shape.chunks = shape.parts = 1;
  return shape;
}

// Tiles that a library wants apart.
void take_tiles(RoomTaker& taker, const AttentionArgs& args, LibraryRoom& room) {
  const int64_t tiles = args.max_rows;
  const bool is_cutlass = args.family == AttentionFamily::kCutlassMla;
  room.tiles.queries = is_cutlass ? kCutlassQueries : room.shape.queries;
  room.tiles.pages = taker.take_ints(tiles * args.max_blocks);
  const bool is_apart = is_cutlass ? args.num_heads < kCutlassQueries : room.shape.tokens > 1;
  if (!is_apart) return;
  room.tiles.q = taker.take_halves(tiles * room.tiles.queries * kLibraryDim);
  room.tiles.out = taker.take_halves(tiles * room.tiles.queries * kLibraryValues);
}

// False where the workspace is too small.
bool take_room(const AttentionArgs& args, LibraryRoom& room) {
  RoomTaker taker(args);
  room.shape = shape_of(args);
  take_lists(taker, args.max_rows, room);
  if (args.family != AttentionFamily::kFlashInferMla) take_tiles(taker, args, room);
  if (args.family == AttentionFamily::kCutlassMla) {
    room.rest_floats = cutlass_mla_floats(args);
  } else {
    const bool is_flashmla = args.family == AttentionFamily::kFlashMla;
    const int64_t sums = int64_t{args.max_rows} * room.shape.queries;
    room.rest_floats = is_flashmla ? sums + 16 + 8 * int64_t{room.shape.parts} : 0;
    room.partials.rows = is_flashmla ? room.shape.queries : kLibraryQueries;
    room.partials.are_floats = is_flashmla;
    take_partials(taker, room, room.rest_floats);
  }
  if (room.shape.parts < 1) return false;
  room.rest = taker.take(room.rest_floats);
  return taker.left() >= 0;
}

bool run_library(const AttentionArgs& args, const LibraryRoom& room, cudaStream_t stream) {
  switch (args.family) {
    case AttentionFamily::kFlashMla:
      return run_flashmla(args, room, stream);
    case AttentionFamily::kFlashInferMla:
      return run_flashinfer_mla(args, room, stream);
    default:
      return run_cutlass_mla(args, room, stream);
  }
}

}  // namespace

bool has_attention_library(AttentionFamily family) {
  switch (family) {
#ifdef FORETOKEN_FLASHMLA
    case AttentionFamily::kFlashMla:
      return device_traits().wgmma;
#endif
#ifdef FORETOKEN_FLASHINFER
    case AttentionFamily::kFlashInferMla:
      return device_traits().wgmma;
#endif
#ifdef FORETOKEN_CUTLASS_MLA
    case AttentionFamily::kCutlassMla:
      return is_blackwell();
#endif
    default:
      return false;
  }
}

bool launch_attention_library(const AttentionArgs& args, cudaStream_t stream) {
  if (!has_attention_library(args.family) || !takes_op(args)) return false;
  LibraryRoom room{};
  if (!take_room(args, room)) return false;
  if (!args.repeats) launch_library_plan(args, room, stream);
  if (room.tiles.pages != nullptr) launch_library_gather(args, room, stream);
  if (!run_library(args, room, stream)) return false;
  const bool may_cut = args.family != AttentionFamily::kCutlassMla;
  if (may_cut || room.tiles.out != nullptr) launch_library_combine(args, room, stream);
  return true;
}

#ifndef FORETOKEN_FLASHMLA
bool run_flashmla(const AttentionArgs&, const LibraryRoom&, cudaStream_t) { return false; }
#endif
#ifndef FORETOKEN_FLASHINFER
bool run_flashinfer_mla(const AttentionArgs&, const LibraryRoom&, cudaStream_t) { return false; }
#endif
#ifndef FORETOKEN_CUTLASS_MLA
bool run_cutlass_mla(const AttentionArgs&, const LibraryRoom&, cudaStream_t) { return false; }
int64_t cutlass_mla_floats(const AttentionArgs&) { return 0; }
#endif

}  // namespace foretoken::cuda
