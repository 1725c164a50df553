#pragma once
#include <cstdint>

#include "device/row_table.h"

namespace foretoken::cpu {

// to[j] = element j of row `row` of a table of rows of n elements, widened and times `scale`.
void read_table_row(const RowTable& table, int64_t row, int32_t n, float scale, float* to);

}  // namespace foretoken::cpu
