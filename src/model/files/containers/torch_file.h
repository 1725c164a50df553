#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/files/mapped_file.h"
#include "base/result.h"
#include "model/files/containers/safetensors.h"

namespace foretoken {

// A read-only mapping of a file that torch.save wrote (pytorch_model.bin), whose dictionary of
// tensors is read without running anything (model/pickle.h): the zip archives of torch 1.6 and
// later, and the plain files before them. Tensors lie in the file as they are, apart from views
// that are not contiguous, which are copied. A dictionary inside of "state_dict", "model" or
// "module" is taken for the whole.
class TorchFile {
 public:
  // NotFound when the file cannot be opened; Unsupported names what would have to be run, or how
  // the tensors are stored; InvalidArgument names the file, the tensor and the remedy.
  static Result<std::unique_ptr<TorchFile>> open(const std::string& path);

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }

 private:
  friend class TorchReader;
  TorchFile() = default;

  std::unique_ptr<MappedFile> file_;
  std::map<std::string, TensorView> tensors_;
  std::vector<std::vector<std::byte>> copies_;
};

}  // namespace foretoken
