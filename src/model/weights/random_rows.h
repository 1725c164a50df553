#pragma once
#include <cstddef>
#include <cstdint>

#include "base/quantized_rows.h"

namespace foretoken {

// Row `row` of the random quantised matrix of that seed, of k elements, as base/quantized_rows.h
// lays rows out. Codes are drawn evenly from all there are; every scale is the one with which
// elements have this standard deviation and a mean of about zero. k fits whole groups.
void random_quantized_row(const QuantForm& form, uint64_t seed, int64_t row, int64_t k,
                          float deviation, std::byte* to);

}  // namespace foretoken
