#pragma once
#include "kernels/attention/cuda/library/attention_library.cuh"

namespace foretoken::cuda {

// Fills the lists of the room. What follows in the queue may start only when it has ended.
void launch_library_plan(const AttentionArgs& args, const LibraryRoom& room, cudaStream_t stream);

// Joins what parts left of tiles that are cut, and copies the rows of the others from
// LibraryTiles::out, if that is not null.
void launch_library_combine(const AttentionArgs& args, const LibraryRoom& room,
                            cudaStream_t stream);

}  // namespace foretoken::cuda
