#pragma once
#include <span>

namespace foretoken {

// How near two texts are: the product of their embeddings, which is their cosine where both have
// length 1. Summed in order, in double precision; the spans must be equally long.
double embedding_score(std::span<const float> a, std::span<const float> b);

}  // namespace foretoken
