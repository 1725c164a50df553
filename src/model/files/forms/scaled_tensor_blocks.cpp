#include <algorithm>

#include "model/files/containers/safetensors.h"
#include "model/files/forms/scaled_tensor.h"

// Which blocks of a scaled tensor share a scale.

namespace foretoken {
namespace {

constexpr int64_t kUsualBlock = 128;  // rows and columns, where no file says otherwise

int64_t blocks_of(int64_t size, int64_t block) { return (size + block - 1) / block; }

// Elements of one side of a block, of which there are `count`; 0: they do not fit. `named` is what
// the quantization names, 0: nothing.
int64_t block_size(int64_t size, int64_t count, int64_t named) {
  if (count == 1) return std::max<int64_t>(size, 1);
  if (count == size) return 1;
  const int64_t block = named > 0 ? named : kUsualBlock;
  return blocks_of(size, block) == count ? block : 0;
}

}  // namespace

Status ScaledTensor::misfit() const {
  const TensorView& scales = *parts_.scales;
  TensorView elements;
  elements.shape = shape_;
  return unfit_shape(scales, ", which are no scales of '" + parts_.codes->name + "' of shape " +
                                 elements.shape_text() + " with the blocks of quantization_config");
}

// Scales have the dimensions of the matrix, fewer where they are one a row or one in all, or more
// of one element each (ModelOpt's blocks). Blocks that the quantization names are as many as it
// says, but where each row has its own: one scale less would be read as that of a larger block.
Status ScaledTensor::find_blocks(const Quantization& quantization) {
  const int64_t matrices = num_matrices();
  const int64_t num_scales = parts_.scales->num_elements();
  std::vector<int64_t> shape = parts_.scales->shape;
  for (size_t i = shape.size(); i-- > 0 && shape.size() > shape_.size();) {
    if (shape[i] == 1) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (num_scales == 0) return misfit();
  int64_t down = 0, across = 0;
  const bool named = quantization.block_rows > 0 && shape.size() >= 2;
  if (!named && (num_scales == 1 || (matrices > 1 && num_scales == matrices))) {
    down = across = 1;
  } else if (num_scales == matrices * rows_ && (shape.size() < 2 || shape.back() != cols_)) {
    down = rows_;
    across = 1;
  } else if (shape.size() >= 2) {
    down = shape[shape.size() - 2];
    across = shape.back();
  }
  if (down == 0 || across == 0) return misfit();
  if (named && down != rows_ &&
      (down != blocks_of(rows_, quantization.block_rows) ||
       across != blocks_of(cols_, quantization.block_cols))) {
    return misfit();
  }
  const int64_t group = usual_group(quantization);
  const bool differs = quantization.nvfp4_differs && group == quantization.nvfp4_group;
  const bool fits = group == 0 || across == blocks_of(cols_, group) ||
                    (differs && across == blocks_of(cols_, 2 * group));
  if (!fits) return misfit();
  const bool one_for_all = num_scales == 1 && matrices > 1;
  if (!one_for_all && num_scales != matrices * down * across) return misfit();
  const bool paired = parts_.type == CodeType::kE2m1OfRows;
  block_rows_ = paired ? kPairedRows : block_size(rows_, down, quantization.block_rows);
  block_cols_ = block_size(cols_, across, quantization.block_cols);
  // Groups along whole rows divide them.
  if (block_rows_ == 1 && across > 1 && cols_ % across == 0) block_cols_ = cols_ / across;
  if (block_rows_ == 0 || block_cols_ == 0) return misfit();
  lines_ = one_for_all ? 0 : down;
  across_ = across;
  return {};
}

}  // namespace foretoken
