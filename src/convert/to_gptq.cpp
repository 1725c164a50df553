#include "convert/to_gptq.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/new_file.h"
#include "convert/model_tensors.h"
#include "gguf/hf_names.h"
#include "model/files/checkpoint.h"
#include "model/files/json_file.h"
#include "model/registry.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kBytesAtOnce = int64_t{16} << 20;

// A tensor of the new file: what the header says, and the matrix or tensor that it comes from.
struct NewTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t num_bytes;
};

NewTensor as_it_is(const TensorView& view) {
  return {view.name, view.dtype_name, view.shape, view.num_bytes};
}

std::vector<NewTensor> quantized(const std::string& base, const GptqForm& form, int64_t n,
                                 int64_t k) {
  const int64_t pack = form.per_word(), groups = k / form.group;
  return {{base + ".qweight", "I32", {k / pack, n}, k / pack * n * 4},
          {base + ".qzeros", "I32", {groups, n / pack}, groups * (n / pack) * 4},
          {base + ".scales", "F16", {groups, n}, groups * n * 2},
          {base + ".g_idx", "I32", {k}, k * 4}};
}

// The folder while it is written; removed again unless it is committed.
class NewFolder {
 public:
  explicit NewFolder(const std::string& path) : path_(path), partial_(path + ".partial") {}
  ~NewFolder() {
    std::error_code ignored;
    if (made_) fs::remove_all(partial_, ignored);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  Status create() {
    std::error_code error;
    if (fs::exists(path_, error) &&
        !(fs::is_directory(path_, error) && fs::is_empty(path_, error))) {
      return invalid_argument("'" + path_ +
                              "' exists already; name a new folder (folders are never replaced)");
    }
    fs::remove_all(partial_, error);
    made_ = fs::create_directories(partial_, error);
    if (made_) return {};
    return invalid_argument("'" + partial_.string() + "' cannot be created (" + error.message() +
                            "); name a folder that may be written");
  }
  std::string file(const fs::path& name) const { return (partial_ / name).string(); }
  Status commit() {
    std::error_code error;
    fs::rename(partial_, path_, error);
    if (error) return internal_error("'" + path_ + "' cannot be made (" + error.message() + ")");
    made_ = false;
    return {};
  }

 private:
  const std::string path_;
  const fs::path partial_;
  bool made_ = false;
};

class GptqConversion {
 public:
  GptqConversion(const GptqForm& form, const ConvertOptions& options)
      : form_(form), options_(options) {}

  // Plans the new file.
  Status add(const ModelTensor& tensor, const TensorView& view) {
    const bool projection = tensor.layer >= 0 && tensor.shape.size() == 2;
    if (!projection) {
      items_.push_back({&view, {as_it_is(view)}, {}});
      return {};
    }
    const int64_t n = tensor.shape[0], k = tensor.shape[1];
    if (k % form_.group != 0 || n % form_.per_word() != 0) {
      return unsupported(view.file + ": tensor '" + view.name + "' has shape " + view.shape_text() +
                         ", but columns must be whole groups of " + std::to_string(form_.group) +
                         " and rows a multiple of " + std::to_string(form_.per_word()) +
                         "; choose a smaller --group-size");
    }
    const std::string base = view.name.substr(0, view.name.rfind('.'));
    items_.push_back({&view, quantized(base, form_, n, k), base});
    return {};
  }

  Result<int64_t> write(const std::string& path) {
    const std::string front = header();
    FT_ASSIGN_OR_RETURN(file_, NewFile::create(path, std::ssize(front) + total_, true));
    FT_RETURN_IF_ERROR(file_->append(front.data(), std::ssize(front)));
    for (const Item& item : items_) {
      FT_RETURN_IF_ERROR(item.base.empty() ? copy(*item.view) : quantize(*item.view));
    }
    FT_RETURN_IF_ERROR(file_->commit());
    return file_->size();
  }

 private:
  struct Item {
    const TensorView* view;
    std::vector<NewTensor> made;
    std::string base;  // of a quantised matrix; else empty
  };

  // The length of the JSON, then the JSON.
  std::string header() {
    Json json = {{"__metadata__", {{"format", "pt"}}}};
    for (const Item& item : items_) {
      for (const NewTensor& tensor : item.made) {
        json[tensor.name] = {{"dtype", tensor.dtype},
                             {"shape", tensor.shape},
                             {"data_offsets", {total_, total_ + tensor.num_bytes}}};
        total_ += tensor.num_bytes;
      }
    }
    std::string text = json.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const uint64_t bytes = text.size();
    return std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes) + text;
  }

  template <class T>
  Status append(const std::vector<T>& values) {
    const auto bytes = std::ssize(values) * static_cast<int64_t>(sizeof(T));
    FT_RETURN_IF_ERROR(file_->append(values.data(), bytes));
    return advance(bytes);
  }
  Status advance(int64_t bytes) {
    done_ += bytes;
    if (options_.progress) options_.progress(done_, total_);
    return options_.is_cancelled() ? aborted("converting was cancelled") : Status();
  }
  Status copy(const TensorView& view) {
    std::vector<std::byte> bytes;
    for (int64_t first = 0; first < view.num_bytes; first += kBytesAtOnce) {
      bytes.resize(static_cast<size_t>(std::min(kBytesAtOnce, view.num_bytes - first)));
      FT_RETURN_IF_ERROR(view.read(first, std::ssize(bytes), bytes.data()));
      FT_RETURN_IF_ERROR(append(bytes));
    }
    return {};
  }
  Status quantize(const TensorView& view) {
    FT_ASSIGN_OR_RETURN(const GptqMatrix matrix, quantize_gptq(TensorRows(view), form_));
    FT_RETURN_IF_ERROR(append(matrix.codes));
    FT_RETURN_IF_ERROR(append(matrix.zeros));
    FT_RETURN_IF_ERROR(append(matrix.scales));
    return append(matrix.groups);
  }

  const GptqForm form_;
  const ConvertOptions& options_;
  std::vector<Item> items_;
  std::unique_ptr<NewFile> file_;
  int64_t total_ = 0;
  int64_t done_ = 0;
};

bool holds_weights(const fs::path& file) {
  const std::string name = file.filename().string();
  for (const char* ending : {".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json",
                             ".pth", ".pt", ".gguf", ".onnx"}) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

Status copy_others(const fs::path& from, const NewFolder& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(from, error)) {
    const fs::path name = entry.path().filename();
    if (!entry.is_regular_file() || holds_weights(name) || name == "config.json") continue;
    fs::copy_file(entry.path(), folder.file(name), error);
    if (error) {
      return internal_error("'" + entry.path().string() + "' cannot be copied (" + error.message() +
                            "); check the disk");
    }
  }
  return {};
}

Status write_config(const ModelFiles& model, const GptqForm& form, const NewFolder& folder) {
  FT_ASSIGN_OR_RETURN(Json config, read_model_json(model, "config.json"));
  config["quantization_config"] = {
      {"quant_method", "gptq"},     {"bits", form.bits}, {"group_size", form.group},
      {"desc_act", false},          {"sym", true},       {"lm_head", false},
      {"checkpoint_format", "gptq"}};
  const std::string text = config.dump(2) + "\n";
  FT_ASSIGN_OR_RETURN(const auto file,
                      NewFile::create(folder.file("config.json"), std::ssize(text), true));
  FT_RETURN_IF_ERROR(file->append(text.data(), std::ssize(text)));
  return file->commit();
}

}  // namespace

Result<int64_t> to_gptq(const ModelFiles& model, const GptqForm& form,
                        const ConvertOptions& options) {
  if (model.is_gguf()) {
    return invalid_argument(model.text() + " is a GGUF file; name a Hugging Face folder");
  }
  if (is_gguf(options.output)) {
    return invalid_argument("'" + options.output +
                            "' has the name of a GGUF file, but a folder is written; name another");
  }
  FT_ASSIGN_OR_RETURN(const ModelConfig config, read_model_config(model, {}));
  if (gguf_architecture_for(config.architecture) == nullptr) {
    return unsupported(model.text() + ": models of the architecture " + config.architecture +
                       " are not converted; those that are: " + gguf_hf_classes());
  }
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(model));
  const auto tensors = model_tensors(config, find_architecture(config.architecture)->decoder);
  FT_ASSIGN_OR_RETURN(const auto views, find_tensors(checkpoint, tensors));
  GptqConversion conversion(form, options);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (views[i]->packed != nullptr) {
      return invalid_argument(model.text() + " is quantised already; name the model as it was");
    }
    FT_RETURN_IF_ERROR(conversion.add(tensors[i], *views[i]));
  }
  NewFolder folder(options.output);
  FT_RETURN_IF_ERROR(folder.create());
  FT_ASSIGN_OR_RETURN(const int64_t bytes, conversion.write(folder.file("model.safetensors")));
  FT_RETURN_IF_ERROR(write_config(model, form, folder));
  FT_RETURN_IF_ERROR(copy_others(model.path(), folder));
  FT_RETURN_IF_ERROR(folder.commit());
  return bytes;
}

}  // namespace foretoken
