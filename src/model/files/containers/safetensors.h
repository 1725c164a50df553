#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/files/mapped_file.h"
#include "base/result.h"
#include "gguf/blocks/block_type.h"

namespace foretoken {

class AffineTensor;
class BnbTensor;
class FloatZeroTensor;
class JoinedTensor;
class MadeTensor;
class PackedTensor;
class RoundedTensor;
class ScaledTensor;
class UnpackedTensor;

// Element types of the safetensors format that models are made of: weights, and the id lists of
// draft heads. Others are kOther.
enum class FileDType : uint8_t { kF32, kBF16, kF16, kI64, kBool, kOther };

// A tensor inside a mapped file. `data` may be unaligned and lives as long as the file object.
struct TensorView {
  std::string name;
  std::string file;
  FileDType dtype = FileDType::kF32;
  std::string dtype_name;  // as written in the file
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;
  int64_t num_bytes = 0;
  int descriptor = -1;      // of the file, open as long as the file object; -1: `data` alone
  int64_t file_offset = 0;  // of `data`
  // Of a quantised GGUF tensor: its elements lie in blocks, and `dtype` is kOther.
  const BlockType* block = nullptr;
  // Of a matrix whose codes, scales and zeros are tensors of their own
  // (model/files/forms/packed_tensor.h): `dtype` is kOther and there are no `data`.
  const PackedTensor* packed = nullptr;
  // Of codes whose scales are tensors of their own (model/files/forms/scaled_tensor.h): `dtype` is
  // kOther, `shape` that of the elements, and there are no `data`.
  const ScaledTensor* scaled = nullptr;
  // Of a matrix of MLX (model/files/forms/affine_tensor.h): as for `scaled`.
  const AffineTensor* affine = nullptr;
  // Of a matrix of bitsandbytes (model/files/forms/bnb_tensor.h): as for `scaled`.
  const BnbTensor* bnb = nullptr;
  // Of a matrix of HQQ or torchao (model/files/forms/float_zero_tensor.h): as for `scaled`.
  const FloatZeroTensor* float_zeros = nullptr;
  // Of a plain tensor whose elements are rounded while they are read
  // (model/files/forms/rounded_tensor.h): `dtype` is kOther and there are no `data`.
  const RoundedTensor* rounded = nullptr;
  // Of a matrix that is computed while it is read (model/files/forms/made_tensor.h): as for
  // `rounded`.
  const MadeTensor* made = nullptr;
  // Of a matrix of FP8: what the rows that it multiplies are divided by before they are rounded, as
  // its file was calibrated (input_scale); 0: it says nothing.
  float input_scale = 0;
  // Of a tensor that a package keeps smaller than its elements
  // (model/files/containers/unpacked_tensor.h): `read` unpacks, and there are no `data`.
  const UnpackedTensor* unpacked = nullptr;
  // Of a matrix whose parts lie in several files (model/files/containers/joined_tensor.h): as for
  // `unpacked`.
  const JoinedTensor* joined = nullptr;
  // Rows of a head, where the rows of its two halves alternate in the file (gguf/hf_names.h); 0:
  // rows lie in the order of `shape`.
  int64_t interleaved_rows = 0;
  // Columns of a row, all of them, where those of its two halves alternate in the file; 0: they lie
  // in order.
  int64_t interleaved_cols = 0;
  // Of a norm's weights: the file has 1 + w where folders have w.
  bool is_whole_norm = false;

  int64_t num_elements() const;
  int64_t element_bytes() const;  // 0: no elements
  // Copies bytes [first, first + count) of the tensor by reading the file, so that one which was
  // cut short or fails is an error that names it. Any thread.
  Status read(int64_t first, int64_t count, void* to) const;
  // For messages: "[2, 3]".
  std::string shape_text() const;
};

// InvalidArgument: the shape of a tensor does not fit others, or the configuration, as `why` says
// behind it (", but ..."), so that files are not of one model.
Status unfit_shape(const TensorView& tensor, const std::string& why);

// The elements of a tensor of integers, I64 or I32. Unsupported, naming file and tensor, for other
// types; otherwise errors as of TensorView::read.
Result<std::vector<int64_t>> read_integers(const TensorView& tensor);

// A read-only mapping of one .safetensors file whose header was fully checked: its length, JSON,
// types, shapes against byte counts, and offsets that cover the data without gaps or overlaps.
class SafetensorsFile {
 public:
  // NotFound when the file cannot be opened; InvalidArgument names the file, the tensor and the
  // remedy.
  static Result<std::unique_ptr<SafetensorsFile>> open(const std::string& path);

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  // What its header says of it beside its tensors, texts alone: safetensors.torch.save_model writes
  // which name that it left out stands for which tensor.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  explicit SafetensorsFile(std::string path) : path_(std::move(path)) {}
  Status check_kind() const;
  Status read_header();
  Status check_layout(int64_t data_bytes) const;

  std::string path_;
  std::unique_ptr<MappedFile> file_;
  std::map<std::string, TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace foretoken
