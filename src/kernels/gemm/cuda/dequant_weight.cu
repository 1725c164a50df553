#include "kernels/gemm/cuda/dequant_weight.cuh"

#include <cuda_fp16.h>

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "device/cuda/mapped_memory.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/weight_layout.cuh"
#include "kernels/gemm/cuda/dequant_codes.cuh"
#include "kernels/gemm/cuda/fp8_weight.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kPackThreads = 256;
constexpr int64_t kMaxPackBlocks = 8192;

// Rows as base/quantized_rows.h lays them out, which lie at any byte.
struct PackedSource {
  const uint8_t* rows;
  int64_t row_bytes;
  int64_t k;
  int32_t group;
  GroupScale scale;

  __device__ const uint8_t* row(int64_t i) const { return rows + i * row_bytes; }
  __device__ uint32_t code(const uint8_t* row, int64_t column) const {
    return column < k ? row[column] : 0;
  }
  __device__ float float_at(const uint8_t* row, int64_t i) const {
    float value;
    memcpy(&value, row + k + i * 4, sizeof value);
    return value;
  }
  // Of the group of a column in a list of halves; zero behind k.
  __device__ uint16_t half_at(const uint8_t* row, int64_t column, int list = 0) const {
    const int64_t i = list * (k / group) + column / group;
    return column < k ? static_cast<uint16_t>(row[k + i * 2] | row[k + i * 2 + 1] << 8) : 0;
  }
  // Of the group of a column, behind the float of a row; zero behind k.
  __device__ uint8_t byte_at(const uint8_t* row, int64_t column) const {
    return column < k ? row[k + 4 + column / group] : 0;
  }
  // Of the group of a column its scale (list 0) or minimum (list 1), exactly; zero behind k.
  __device__ float factor_at(const uint8_t* row, int64_t column, int list = 0) const {
    const bool is_super = scale == GroupScale::kSuper || scale == GroupScale::kSuperSigned;
    if (!is_super) return __half2float(__ushort_as_half(half_at(row, column, list)));
    if (column >= k) return 0;
    const int lists = scale == GroupScale::kSuper ? 2 : 1;
    const int64_t supers = k / kSuperGroup;
    const uint8_t* half = row + k + (list * supers + column / kSuperGroup) * 2;
    const auto bits = static_cast<uint16_t>(half[0] | half[1] << 8);
    const uint8_t byte = row[k + lists * supers * 2 + list * (k / group) + column / group];
    const float times =
        lists == 2 ? static_cast<float>(byte) : static_cast<float>(static_cast<int8_t>(byte));
    return __half2float(__ushort_as_half(bits)) * times;
  }
  __device__ uint8_t zero_at(const uint8_t* row, int64_t column) const {
    return column < k ? row[k + k / group * 2 + column / group] : 0;
  }
};

// The exponent as a bfloat16 has it of 2^103 times a half that is a power of two: codes are
// doubled.
__device__ uint8_t exponent_of_base(uint16_t half) {
  if (half == 0) return 0;
  return static_cast<uint8_t>((__float_as_uint(__half2float(__ushort_as_half(half))) >> 23) + 103);
}

__device__ uint16_t nearest_bf16(float value) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}

template <class Form>
constexpr bool is_int = std::is_same_v<typename Form::Base, IntBase>;

template <class Form>
__device__ void put_int_scales(uint8_t* scales, const PackedSource& source, const uint8_t* from,
                               int64_t first, int row) {
  using Scales = typename Form::Scales;
  for (int g = 0; g < Scales::kBases; ++g) {
    const int64_t column = first + g * (kUnitK / Scales::kBases);
    const auto put = [&](int place, uint16_t bits) {
      *reinterpret_cast<uint16_t*>(scales + place) = bits;
    };
    const uint16_t scale = nearest_bf16(source.factor_at(from, column));
    put(Scales::scale_place(row, g), int_scale_bits(scale, Scales::kPlace));
    if constexpr (Scales::kHasMinima) {
      const float minimum = source.factor_at(from, column, 1);
      put(Scales::minimum_place(row, g), nearest_bf16(-minimum / kSmallRowScale));
    }
    if constexpr (Scales::kHasZeros) {
      scales[Scales::zero_place(row, g)] = source.zero_at(from, column);
    }
  }
}

// The scales of row `row` of its unit.
template <class Form>
__device__ void put_scales(uint8_t* scales, const PackedSource& source, const uint8_t* from,
                           int64_t first, int row) {
  if constexpr (is_int<Form>) {
    put_int_scales<Form>(scales, source, from, first, row);
  } else if constexpr (std::is_same_v<Form, Fp8By128Form>) {
    reinterpret_cast<float*>(scales)[row] = source.float_at(from, first / source.group);
  } else if constexpr (std::is_same_v<Form, Mxfp4Form>) {
    for (int g = 0; g < 4; ++g) {
      scales[g * 8 + row] = exponent_of_base(source.half_at(from, first + g * 32));
    }
  } else if constexpr (std::is_same_v<Form, Nvfp4Form>) {
    for (int g = 0; g < 8; ++g) {
      scales[row * 8 + g] = nvfp4_scale_bits(source.byte_at(from, first + g * 16));
    }
  }
}

// Word `word` of the codes of lane t of the four of a row, in the unit that begins at column
// `first`.
template <class Form>
__device__ uint32_t make_word(const PackedSource& source, const uint8_t* from, int64_t first, int t,
                              int word) {
  using Codes = typename Form::Codes;
  uint32_t bits = 0;
  const int begin = Codes::kSpreads ? 0 : word * 8 / Codes::kWords;
  const int end = Codes::kSpreads ? 8 : (word + 1) * 8 / Codes::kWords;
  for (int s = begin; s < end; ++s) {
    for (int j = 0; j < 4; ++j) {
      const int64_t column = first + column_of_code(s, j / 2, j % 2, t);
      uint32_t code = source.code(from, column);
      if constexpr (std::is_same_v<Form, Nvfp4Form>) {
        code = nvfp4_code(code, source.byte_at(from, column));
      }
      if constexpr (Codes::kSpreads) {
        bits |= Codes::place(code, s * 2 + j / 2, word) << (j % 2 * 16);
      } else {
        bits |= Codes::place(code, s, j / 2, j % 2);
      }
    }
  }
  return bits;
}

template <class Form>
__device__ float row_scale(const PackedSource& source, const uint8_t* from) {
  if constexpr (is_int<Form> || std::is_same_v<Form, Mxfp4Form>) {
    return kSmallRowScale;
  } else {
    // Codes of E2M1 are the doubles of its numbers.
    const float scale = source.float_at(from, 0);
    return std::is_same_v<Form, Nvfp4Form> ? 2 * kSmallRowScale * scale : scale;
  }
}

// A thread makes one word of codes: lane t of the four of a row, word i of its unit.
template <class Form>
__global__ void pack_quantized_kernel(PackRowsArgs args, PackedSource source,
                                      QuantizedMatrix matrix) {
  using Codes = typename Form::Codes;
  constexpr int kRowWords = 4 * Codes::kWords;
  const int units = num_units(args.k);
  const int64_t step = int64_t{gridDim.x} * kPackThreads;
  const int64_t count = args.num_rows * units * kRowWords;
  for (int64_t i = int64_t{blockIdx.x} * kPackThreads + threadIdx.x; i < count; i += step) {
    const auto t = static_cast<int>(i % 4), word = static_cast<int>(i / 4 % Codes::kWords);
    const int64_t unit = i / kRowWords % units, own = i / kRowWords / units;
    int64_t row = row_in_packing_order(args.first_row + own, args.n, args.slice_rows, args.order);
    if (args.order == WeightOrder::kGateUp) row = gate_up_row(row, args.n);
    const auto r = static_cast<int>(row % kGroupRows);
    const uint8_t* from = source.row(own);
    uint8_t* to = matrix.units + (row / kGroupRows * units + unit) * kUnitBytes<Form>;
    reinterpret_cast<uint32_t*>(to)[place_of_word<Codes::kWords>(word, r * 4 + t)] =
        make_word<Form>(source, from, unit * kUnitK, t, word);
    if (t != 0 || word != 0) continue;
    put_scales<Form>(to + Codes::kCodeBytes, source, from, unit * kUnitK, r);
    if (matrix.row_scales != nullptr && unit == 0) {
      matrix.row_scales[row] = row_scale<Form>(source, from);
    }
  }
}

int64_t unit_bytes(DequantKind kind) {
  if (takes_rounded(kind)) return kAtomBytes;
  int64_t bytes = 0;
  with_form(kind, [&]<class Form>() { bytes = kUnitBytes<Form>; });
  return bytes;
}

bool allocate(QuantizedMatrix& matrix) {
  const auto zeros = [](auto** memory, int64_t bytes) {
    const auto size = static_cast<size_t>(bytes);
    return take_device_memory(reinterpret_cast<void**>(memory), size) == cudaSuccess &&
           cudaMemset(*memory, 0, size) == cudaSuccess;
  };
  const int64_t groups = ceil_div(matrix.rows, kGroupRows);
  const int64_t units = groups * num_units(matrix.k) * unit_bytes(matrix.kind);
  const bool scales_rows = matrix.kind != DequantKind::kFp8By128;
  const int64_t num_scales = takes_rounded(matrix.kind) ? num_fp8_scales(matrix)
                             : scales_rows              ? groups * kGroupRows
                                                        : 0;
  const int64_t scales = num_scales * int64_t{sizeof(float)};
  matrix.bytes = units + scales;
  return zeros(&matrix.units, units) && (scales == 0 || zeros(&matrix.row_scales, scales)) &&
         cudaStreamSynchronize(nullptr) == cudaSuccess;
}

void* handle_of(QuantizedMatrix* matrix) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(matrix) | 1);
}

// Of GGUF's blocks.
DequantKind kind_of_blocks(const QuantForm& form) {
  struct Known {
    QuantForm form;
    DequantKind kind;
  };
  constexpr Known kKnown[] = {
      {{2, GroupScale::kSuper, 16}, DequantKind::kInt2MinBy16},
      {{3, GroupScale::kSuperSigned, 16}, DequantKind::kInt3By16},
      {{4, GroupScale::kSuper, 32}, DequantKind::kInt4MinBy32},
      {{5, GroupScale::kSuper, 32}, DequantKind::kInt5MinBy32},
      {{6, GroupScale::kSuperSigned, 16}, DequantKind::kInt6By16},
      {{4, GroupScale::kSuperSigned, 32, CodeTable::kIq4}, DequantKind::kIq4By32},
      {{4, GroupScale::kHalf, 32, CodeTable::kIq4}, DequantKind::kIq4By32},
      {{4, GroupScale::kHalfAndMinimum, 32}, DequantKind::kInt4MinBy32},
      {{5, GroupScale::kHalf, 32}, DequantKind::kInt5By32},
      {{5, GroupScale::kHalfAndMinimum, 32}, DequantKind::kInt5MinBy32},
  };
  // A half is laid out for each 32 columns, whatever number of those shares it.
  QuantForm same = form;
  if (form.scale == GroupScale::kHalfAndMinimum && form.group % 32 == 0) same.group = 32;
  for (const Known& known : kKnown) {
    if (known.form == same) return known.kind;
  }
  return DequantKind::kNone;
}

}  // namespace

DequantKind dequant_kind(const QuantForm& form) {
  if (form.rounds_rows) {
    if (!takes_rounded_rows(form)) return DequantKind::kNone;
    return form.scale == GroupScale::kFloat ? DequantKind::kFp8RowsBy128 : DequantKind::kFp8Rows;
  }
  const DequantKind of_blocks = kind_of_blocks(form);
  if (of_blocks != DequantKind::kNone) return of_blocks;
  const bool has_zeros = form.scale == GroupScale::kHalfAndZero;
  if (form.table == CodeTable::kE4m3) {
    if (form.scale == GroupScale::kFloatOfRow) return DequantKind::kFp8;
    return form.group == kUnitK ? DequantKind::kFp8By128 : DequantKind::kNone;
  }
  if (form.scale == GroupScale::kRowAndByte) {
    return form.table == CodeTable::kE2m1 && form.group == 16 ? DequantKind::kNvfp4
                                                              : DequantKind::kNone;
  }
  if (form.scale != GroupScale::kHalf && !has_zeros) return DequantKind::kNone;
  if (form.table == CodeTable::kE2m1) {
    return form.powers && form.group == 32 ? DequantKind::kMxfp4 : DequantKind::kNone;
  }
  if (form.table != CodeTable::kNone || form.group % 32 != 0) return DequantKind::kNone;
  const bool is_long = form.group % kUnitK == 0;
  if (form.bits == 4 && has_zeros) {
    return is_long ? DequantKind::kInt4ZeroBy128 : DequantKind::kInt4ZeroBy32;
  }
  if (form.bits == 4) return is_long ? DequantKind::kInt4By128 : DequantKind::kInt4By32;
  return form.bits == 8 && !has_zeros ? DequantKind::kInt8By32 : DequantKind::kNone;
}

bool keeps_quantized(const QuantForm& form, int64_t k) {
  const bool runs = device_traits().wgmma && k % 8 == 0;
  return runs && fits_row(form, k) && dequant_kind(form) != DequantKind::kNone;
}

// Gates and ups alternate, and so do those of experts: these have one form, as units do.
bool keeps_together(std::span<const QuantizedPart> parts, int64_t unit_rows) {
  int64_t rows = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool differs = i > 0 && !(parts[i].form == parts[i - 1].form);
    if (differs && (unit_rows > 0 || rows % kGroupRows != 0)) return false;
    rows += parts[i].num_rows;
  }
  return true;
}

QuantizedWeight make_quantized_weight(std::span<const QuantizedPart> parts, int64_t k,
                                      WeightOrder order, int64_t unit_rows) {
  QuantizedMatrix* first = nullptr;
  QuantizedMatrix** end = &first;
  QuantizedMatrix* last = nullptr;
  int64_t n = 0;
  for (const QuantizedPart& part : parts) {
    n += part.num_rows;
    if (last == nullptr || !(last->form == part.form)) {
      last = *end = new QuantizedMatrix{part.form, dequant_kind(part.form)};
      end = &last->next;
      last->k = k;
    }
    last->rows += part.num_rows;
  }
  // With gates and ups there is one run, of whole groups of each.
  if (first == last) first->rows = packed_rows(n, order);
  bool made = true;
  for (QuantizedMatrix* run = first; run != nullptr; run = run->next) made = made && allocate(*run);
  if (!made) {
    free_quantized_matrix(handle_of(first));
    cudaGetLastError();
    return {nullptr, 0};
  }
  int64_t slice_rows = weight_slice_rows(n, k, DType::kBF16, order);
  if (unit_rows > 0) slice_rows = std::gcd(slice_rows, 2 * unit_rows);  // of one expert
  return {handle_of(first), slice_rows};
}

int64_t quantized_weight_bytes(const void* handle) {
  int64_t bytes = 0;
  for (const auto* run = quantized_matrix(handle); run != nullptr; run = run->next) {
    bytes += run->bytes;
  }
  return bytes;
}

void free_quantized_matrix(void* handle) {
  const QuantizedMatrix* run = quantized_matrix(handle);
  while (run != nullptr) {
    const QuantizedMatrix* next = run->next;
    free_device_memory(run->units);
    free_device_memory(run->row_scales);
    delete run;
    run = next;
  }
}

namespace {

// Rows of one form; args.n counts those of their matrix.
void pack_run(const PackRowsArgs& args, const QuantizedMatrix& matrix, cudaStream_t stream) {
  const int64_t row_bytes = quantized_row_bytes(matrix.form, args.k);
  const void* rows = args.rows;
  if (args.scratch != nullptr) {
    cudaMemcpyAsync(args.scratch, rows, static_cast<size_t>(args.num_rows * row_bytes),
                    cudaMemcpyDefault, stream);
    rows = args.scratch;
  }
  if (takes_rounded(matrix.kind)) return launch_pack_fp8(args, rows, matrix, stream);
  const PackedSource source{static_cast<const uint8_t*>(rows), row_bytes, args.k, matrix.form.group,
                            matrix.form.scale};
  with_form(matrix.kind, [&]<class Form>() {
    const int64_t words = args.num_rows * num_units(args.k) * 4 * Form::Codes::kWords;
    const auto blocks =
        static_cast<int>(std::min<int64_t>(ceil_div(words, kPackThreads), kMaxPackBlocks));
    pack_quantized_kernel<Form><<<blocks, kPackThreads, 0, stream>>>(args, source, matrix);
  });
}

}  // namespace

void launch_pack_quantized(const PackRowsArgs& args, cudaStream_t stream) {
  const QuantizedMatrix* run = quantized_matrix(args.weight);
  if (run->next == nullptr) return pack_run(args, *run, stream);
  PackRowsArgs own = args;
  int64_t first = 0;  // row of the run
  for (; run != nullptr; first += run->rows, run = run->next) {
    const int64_t begin = std::max(args.first_row, first);
    const int64_t end = std::min(args.first_row + args.num_rows, first + run->rows);
    if (begin >= end) continue;
    own.first_row = begin - first;
    own.num_rows = end - begin;
    own.n = run->rows;
    pack_run(own, *run, stream);
    const int64_t bytes = own.num_rows * quantized_row_bytes(run->form, args.k);
    own.rows = static_cast<const uint8_t*>(own.rows) + bytes;
    if (own.scratch != nullptr) own.scratch = static_cast<uint8_t*>(own.scratch) + bytes;
  }
}

}  // namespace foretoken::cuda
