#pragma once
#include <span>

namespace foretoken {

// The most of so many tensor parallel ranks that have the same heads of keys and values in every
// layer, where layers have `kv_heads` of them. Such ranks can share the positions of sequences.
int ranks_with_equal_kv(std::span<const int> kv_heads, int num_ranks);

// Whether rows of so many numbers have a part of whole words for each of them.
bool divides_rows(int hidden_size, int num_context_ranks);

}  // namespace foretoken
