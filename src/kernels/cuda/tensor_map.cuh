#pragma once
#include <cuda.h>

#include <cstdint>

#include "device/dtype.h"

namespace foretoken::cuda {

// Describes row-major bfloat16 [rows, columns] to copy_box: boxes of box_rows x 64 columns in the
// 128-byte swizzle, zero beyond the edges. `data` lies on 16 bytes and columns is a multiple of 8.
// False when the driver does not know such maps.
bool make_row_map(CUtensorMap& map, const void* data, int64_t rows, int64_t columns, int box_rows);

// The same as [columns / 64, rows, 64], columns a multiple of 64: boxes of box_atoms x box_rows x
// 64 at (0, row, atom), atom after atom, every 128 bytes in the swizzle of their place.
bool make_row_map(CUtensorMap& map, const void* data, int64_t rows, int64_t columns, int box_rows,
                  int box_atoms);

// Describes row-major [rows, columns] of bfloat16 or float to store_box and add_box: boxes of
// box_rows x 128 bytes in the 128-byte swizzle. `data` and the rows lie on 16 bytes.
bool make_output_map(CUtensorMap& map, void* data, DType dtype, int64_t rows, int64_t columns,
                     int box_rows);

// Describes a packed bfloat16 weight [n, k]: boxes of box_groups groups x box_atoms atoms at (0,
// atom, group), which stay as they are, zero beyond the edges.
bool make_weight_map(CUtensorMap& map, const void* weight, int64_t n, int64_t k, int box_atoms,
                     int box_groups);

// Describes a quantised weight in units of unit_bytes bytes, [groups][units], both counts as many
// as there are: boxes of one unit of box_groups groups at (0, unit, group), which stay as they are,
// zero beyond the edges.
bool make_unit_map(CUtensorMap& map, const void* weight, int unit_bytes, int units, int groups,
                   int box_groups);

// Describes the first row_bytes bytes of rows that are row_stride bytes apart (all three and `data`
// multiples of 16): boxes of box_rows x box_bytes at (byte, row), as they are, or of 128 bytes in
// the 128-byte swizzle. Rows behind the end must not be asked for.
bool make_byte_map(CUtensorMap& map, const void* data, int row_bytes, int row_stride, int box_bytes,
                   int box_rows);

// Describes K or V of a bfloat16 cache as [head_dim / 64, entries, 64], entries of head_dim
// elements in the cache's order: boxes of box_entries entries at (0, entry, column), box_columns
// columns of 64 one after the other, each in the 128-byte swizzle. Entries behind the cache's end
// must not be asked for.
bool make_cache_map(CUtensorMap& map, const void* cache, int head_dim, int box_entries,
                    int box_columns);
struct KvMaps {
  CUtensorMap k;
  CUtensorMap v;
};

}  // namespace foretoken::cuda
