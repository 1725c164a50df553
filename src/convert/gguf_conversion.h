#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "convert/convert_options.h"
#include "convert/tensor_rows.h"
#include "gguf/container/gguf_writer.h"
#include "model/files/containers/safetensors.h"

namespace foretoken {

// A tensor of the file to write, and where its elements come from.
struct TensorToEncode {
  GgufTensorEntry entry;
  const TensorView* view = nullptr;
  int32_t turned_head_dim = 0;  // TensorRows
};

// Writes a GGUF file, a few MiB of tensors in memory at a time.
class GgufConversion {
 public:
  explicit GgufConversion(const ConvertOptions& options) : options_(options) {}

  // `last` is one more tensor of floats; its entry has no name where there is none. Aborted when
  // cancelled; InvalidArgument names a tensor whose elements the type cannot hold, or for which
  // the importance matrix does not fit.
  Status run(const GgufKeys& keys, const std::vector<TensorToEncode>& tensors,
             const GgufTensorEntry& last, const std::vector<float>& last_values);
  int64_t num_bytes() const { return writer_->size(); }

 private:
  Status write(const TensorToEncode& tensor);
  Status copy(const TensorToEncode& tensor);
  Status write_rows(const TensorToEncode& tensor, const TensorRows& rows, int64_t first,
                    int64_t count);
  Status append(const std::vector<std::byte>& bytes);

  const ConvertOptions& options_;
  std::unique_ptr<GgufWriter> writer_;
  int64_t done_ = 0;
  int64_t total_ = 0;
};

}  // namespace foretoken
