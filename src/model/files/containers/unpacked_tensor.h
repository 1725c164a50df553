#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

struct TensorView;

// How a package keeps a tensor smaller than its elements, or in the order of one kernel.
enum class Packing : uint8_t {
  // compressed-tensors' sparse matrices: the kept elements of each row, and a bit for each element,
  // the lowest first, whether it is kept; others are 0.
  kMask,
  // The words of the kernel Marlin 24, of matrices of which at most two of four neighbours in a row
  // are not 0. Unpacked they are the words of compressed-tensors' pack-quantized.
  kMarlin24,
  // Floats of six bits, four in three bytes, the lowest bits first (AMD's Quark): three bits of
  // exponent and two of mantissa, or two and three. Unpacked they are E4M3, which has all of them.
  kE3m2,
  kE2m3,
};

// Its tensors, which must outlive it.
struct UnpackedParts {
  Packing packing = Packing::kMask;
  const TensorView* values = nullptr;
  const TensorView* places = nullptr;  // kMask: the bits, kMarlin24: two places of each four; else
                                       // null
  const TensorView* shape = nullptr;   // of kMask: two integers
  const TensorView* starts = nullptr;  // of kMask: where the elements of each row begin; null: rows
                                       // have half of their elements
  int32_t bits = 4;                    // of kMarlin24: 4 or 8
};

// A tensor as it was before it was packed. Reading unpacks some rows at a time, the last of which
// are kept.
class UnpackedTensor {
 public:
  // InvalidArgument and Unsupported name the tensor whose type, shape or mask does not fit, and the
  // remedy.
  static Result<std::unique_ptr<UnpackedTensor>> create(const UnpackedParts& parts);

  // A view under the name, whose elements this tensor gives and which it must outlive.
  TensorView view(const std::string& name) const;

  // Bytes [first, first + count) of the elements, rows one after the other. Errors as of
  // TensorView::read. Any thread.
  Status read(int64_t first, int64_t count, void* to) const;

 private:
  explicit UnpackedTensor(const UnpackedParts& parts) : parts_(parts) {}
  Status find_masked();
  Status check_mask() const;
  Status find_marlin();
  Status find_six_bits();
  Status misfit(const TensorView& tensor, const char* wanted) const;
  Status unpack(int64_t strip) const;
  Status unpack_masked(int64_t first, int64_t count) const;
  Status unpack_marlin(int64_t strip) const;
  Status unpack_six_bits(int64_t first, int64_t count) const;

  UnpackedParts parts_;
  std::vector<int64_t> shape_;  // of what is unpacked
  int64_t rows_ = 0;
  int64_t cols_ = 0;       // of elements; words hold several
  int64_t row_bytes_ = 0;  // unpacked
  int64_t strip_rows_ = 16;
  std::vector<int64_t> starts_;  // of kMask: of each row, then how many elements there are
  mutable std::mutex mutex_;
  mutable int64_t strip_ = -1;  // that is kept
  mutable std::vector<std::byte> kept_;
};

// The scales of a matrix of kMarlin24, [groups, rows] halves in the kernel's order, as [rows,
// groups]. Errors as of UnpackedTensor::create.
Result<std::vector<uint16_t>> marlin_scales(const TensorView& scales, int64_t rows);

}  // namespace foretoken
