#pragma once
#include <cstddef>
#include <span>

namespace foretoken {

// How near two texts are: the product of their embeddings, which is their cosine where both have
// length 1. Summed in order, in double precision; the spans must be equally long.
double embedding_score(std::span<const float> a, std::span<const float> b);

// The same of texts whose tokens have vectors of `size` numbers: for each token of `a` the highest
// product with one of `b`, summed (MaxSim, Khattab and Zaharia 2020); 0 where `b` has none.
double token_score(std::span<const float> a, std::span<const float> b, size_t size);

}  // namespace foretoken
