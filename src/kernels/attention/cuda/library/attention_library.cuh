#pragma once
#include <cuda_bf16.h>

#include "kernels/attention/attention.h"
#include "kernels/attention/cuda/attention_common.cuh"

// Attention over latents by kernels of libraries: FlashMLA's and FlashInfer's for Hopper, CUTLASS's
// for Blackwell. The device finds the tiles of a step (up to `tokens` rows of one sequence at
// consecutive positions, so that the rows of a verification read their keys once) and deals the
// positions that they see to equal parts of the device; what parts leave of a tile that is cut is
// combined afterwards. So steps of any mixture of runs are one graph, and no row is a prompt.
namespace foretoken::cuda {

inline constexpr int kLibraryRows = 1024;  // of a step; longer ones are left to other kernels
inline constexpr int kLibraryUnit = 64;    // positions that are dealt together
inline constexpr int kLibraryQueries = 64;
inline constexpr int kLibraryDim = 576;
inline constexpr int kLibraryValues = 512;

// What the host knows.
struct LibraryShape {
  int tokens;      // rows of a tile, at most
  int queries;     // tokens * query heads
  int chunks;      // of kLibraryQueries queries; each part has a block for each
  int parts;       // among which all positions are dealt
  int max_places;  // partial results of a tile's queries that all parts leave, at most
};

// Device memory. A work is the positions of a tile that one part has; works are ordered by part.
// The lists of works are repeated for each chunk of queries.
struct LibraryLists {
  int32_t* num_tiles;    // [1]
  int32_t* first_row;    // [tiles + 1]
  int32_t* kv_len;       // [tiles] positions that the tile's last row sees
  int32_t* num_works;    // [tiles] 1: the tile is not cut
  int32_t* place;        // [tiles + 1] of its first partial result, if it is cut
  int32_t* tile_of_row;  // [rows]
  int32_t* bounds;       // [chunks * parts + 1] works of each block
  int32_t* work_tile;    // the rest: [works]
  int32_t* work_first;   // token row
  int32_t* work_rows;
  int32_t* work_pages;  // where the sequence's entries of block_tables begin
  int32_t* work_len;    // as kv_len
  int32_t* work_query;  // first query of the chunk
  int32_t* work_begin;  // positions
  int32_t* work_end;
  int32_t* work_place;  // in rows of 512 values of the partial results, or -1: the tile is not cut
  int32_t* zeros;       // [blocks]
};

// Partial results: [(m / rows) * max_places + place][m % rows] of query m of a tile.
struct LibraryPartials {
  void* values;  // [.., 512] weighted means: bfloat16 or float
  float* sums;   // log2 of the sums of weights
  int rows;
  bool are_floats;
};

// Tiles of queries where a library wants them apart: the rows of a tile end with the last token of
// `tokens`, those before are zero.
struct LibraryTiles {
  __nv_bfloat16* q = nullptr;    // [tiles, queries, 576], or null: the op's q
  __nv_bfloat16* out = nullptr;  // [tiles, queries, 512], or null: the op's out
  int32_t* pages = nullptr;      // [tiles, max_blocks]
  int queries = 0;
};

// What an op has in its workspace.
struct LibraryRoom {
  LibraryShape shape;
  LibraryLists lists;
  LibraryPartials partials;
  LibraryTiles tiles;
  float* rest;  // of the library: log-sums of tiles, or what CUTLASS asks for
  int64_t rest_floats;
};

// Fills q and pages of all tiles up to max_rows (those that are none get one position of block 0),
// and with `repeats` q alone. What follows in the queue may start only when it has ended.
void launch_library_gather(const AttentionArgs& args, const LibraryRoom& room, cudaStream_t stream);

// The libraries' kernels over what is planned and gathered; false where nothing was launched.
bool run_flashmla(const AttentionArgs& args, const LibraryRoom& room, cudaStream_t stream);
bool run_flashinfer_mla(const AttentionArgs& args, const LibraryRoom& room, cudaStream_t stream);
bool run_cutlass_mla(const AttentionArgs& args, const LibraryRoom& room, cudaStream_t stream);
// Floats that CUTLASS's kernel asks for.
int64_t cutlass_mla_floats(const AttentionArgs& args);

}  // namespace foretoken::cuda
