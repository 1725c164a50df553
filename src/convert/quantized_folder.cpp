#include "convert/quantized_folder.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/files/new_file.h"
#include "gguf/model_texts.h"
#include "model/config/architecture.h"
#include "model/files/checkpoint.h"
#include "model/files/containers/json_file.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kBytesAtOnce = int64_t{16} << 20;
constexpr std::string_view kWeight = ".weight";

// "a.b" of "a.b.weight".
std::string module_of(const std::string& tensor) {
  return tensor.substr(0, tensor.size() - kWeight.size());
}

NewTensor as_it_is(const TensorView& view) {
  return {view.name, view.dtype_name, view.shape, view.num_bytes};
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

// Rates of state spaces are tables of numbers.
bool is_of_products(const ModelTensor& tensor, const TensorView& view) {
  return tensor.shape.size() != 2 || view.name.ends_with(kWeight);
}

class FolderConversion {
 public:
  FolderConversion(const FolderForm& form, const ConvertOptions& options)
      : form_(form), options_(options) {}

  // Plans the new file.
  Status add(const ModelTensor& tensor, const TensorView& view) {
    const bool is_matrix = tensor.layer >= 0 && tensor.shape.size() >= 2 && !tensor.is_exact &&
                           is_of_products(tensor, view);
    Item& item = items_.emplace_back(Item{&tensor, &view, {}, is_matrix});
    if (!is_matrix) {
      item.made = {as_it_is(view)};
      const bool is_router = tensor.layer >= 0 && tensor.shape.size() == 2;
      if (is_router && view.name.ends_with(kWeight)) plain_.push_back(module_of(view.name));
      return {};
    }
    if (tensor.shape.size() > 2 || !view.name.ends_with(kWeight)) {
      return unsupported(view.file + ": tensor '" + view.name +
                         "' holds the matrices of all experts, which cannot be converted; use "
                         "--quantization fp8 while loading");
    }
    FT_ASSIGN_OR_RETURN(item.made, form_.plan(module_of(view.name), tensor, view));
    return {};
  }

  // The layers' matrices that stay as they are: routers.
  const std::vector<std::string>& plain() const { return plain_; }

  Result<int64_t> write(const std::string& path) {
    const std::string front = header();
    FT_ASSIGN_OR_RETURN(file_, NewFile::create(path, std::ssize(front) + total_, true));
    FT_RETURN_IF_ERROR(file_->append(front.data(), std::ssize(front)));
    const FolderForm::Append append = [this](const void* data, int64_t bytes) {
      return append_bytes(data, bytes);
    };
    for (const Item& item : items_) {
      FT_RETURN_IF_ERROR(item.is_matrix ? form_.write(*item.tensor, *item.view, append)
                                        : copy(*item.view));
    }
    FT_RETURN_IF_ERROR(file_->commit());
    return file_->size();
  }

 private:
  struct Item {
    const ModelTensor* tensor;
    const TensorView* view;
    std::vector<NewTensor> made;
    bool is_matrix;
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
  Status append_bytes(const void* data, int64_t bytes) {
    FT_RETURN_IF_ERROR(file_->append(data, bytes));
    done_ += bytes;
    if (options_.progress) options_.progress(done_, total_);
    return options_.is_cancelled() ? aborted("converting was cancelled") : Status();
  }
  Status copy(const TensorView& view) {
    std::vector<std::byte> bytes;
    for (int64_t first = 0; first < view.num_bytes; first += kBytesAtOnce) {
      bytes.resize(static_cast<size_t>(std::min(kBytesAtOnce, view.num_bytes - first)));
      FT_RETURN_IF_ERROR(view.read(first, std::ssize(bytes), bytes.data()));
      FT_RETURN_IF_ERROR(append_bytes(bytes.data(), std::ssize(bytes)));
    }
    return {};
  }

  const FolderForm& form_;
  const ConvertOptions& options_;
  std::vector<Item> items_;
  std::vector<std::string> plain_;
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

// But weights and what is written anew.
Status copy_others(const fs::path& from, const FolderForm& form, const NewFolder& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(from, error)) {
    const fs::path name = entry.path().filename();
    if (!entry.is_regular_file() || holds_weights(name)) continue;
    if (name == "config.json" || name == form.also_named) continue;
    fs::copy_file(entry.path(), folder.file(name), error);
    if (error) {
      return internal_error("'" + entry.path().string() + "' cannot be copied (" + error.message() +
                            "); check the disk");
    }
  }
  return {};
}

Status write_json(const Json& value, const std::string& path) {
  const std::string text = value.dump(2) + "\n";
  FT_ASSIGN_OR_RETURN(const auto file, NewFile::create(path, std::ssize(text), true));
  FT_RETURN_IF_ERROR(file->append(text.data(), std::ssize(text)));
  return file->commit();
}

// What other engines must be told: that the output matrix, routers and draft modules are as they
// were.
Json whole_quantization(const FolderForm& form, const std::vector<std::string>& routers,
                        const ModuleTensors& modules) {
  Json quantization = form.quantization;
  if (form.plain_modules.empty()) return quantization;
  Json& plain = quantization[form.plain_modules];
  if (plain.is_null()) plain = {"lm_head"};
  for (const std::string& name : routers) plain.push_back(name);
  for (const ModelTensor& tensor : modules.tensors) {
    const bool is_matrix = tensor.shape.size() == 2 && tensor.name.ends_with(kWeight);
    if (!form.has_patterns && is_matrix) plain.push_back(module_of(tensor.name));
  }
  for (const std::string& pattern : modules.ignored) {
    if (form.has_patterns) plain.push_back(pattern);
  }
  return quantization;
}

Status write_config(const ModelFiles& model, const FolderForm& form, const Json& quantization,
                    const NewFolder& folder) {
  FT_ASSIGN_OR_RETURN(Json config, read_model_json(model, "config.json"));
  config["quantization_config"] = quantization;
  FT_RETURN_IF_ERROR(write_json(config, folder.file("config.json")));
  if (form.also_named.empty()) return {};
  return write_json(form.also(quantization), folder.file(form.also_named));
}

// hf_quant_config.json of what config.json says.
Json modelopt_file(const Json& quantization) {
  Json said = {{"quant_algo", quantization["quant_algo"]},
               {"kv_cache_quant_algo", nullptr},
               {"exclude_modules", quantization["ignore"]}};
  if (quantization.contains("group_size")) said["group_size"] = quantization["group_size"];
  return {{"producer", {{"name", "modelopt"}}}, {"quantization", said}};
}

Status check_names(const ModelFiles& model, const ConvertOptions& options) {
  if (model.is_gguf()) {
    return invalid_argument(model.text() + " is a GGUF file; name a Hugging Face folder");
  }
  if (!is_gguf(options.output)) return {};
  return invalid_argument("'" + options.output +
                          "' has the name of a GGUF file, but a folder is written; name another");
}

// A family may keep its matrices otherwise than they are listed.
Result<std::vector<const TensorView*>> find_all(const Checkpoint& checkpoint,
                                                const std::vector<ModelTensor>& tensors,
                                                const std::string& architecture) {
  auto views = find_tensors(checkpoint, tensors);
  if (views.ok() || views.status().code() == StatusCode::kInvalidArgument) return views;
  return Status(views.status().code(),
                views.status().message() + "; where the model runs, matrices of " + architecture +
                    " lie in these files in a form that is not converted: use --quantization fp8 "
                    "while loading");
}

}  // namespace

Json compressed_tensors_config(const std::string& format, const Json& weights, const Json& inputs) {
  const Json group = {{"targets", {"Linear"}},
                      {"weights", weights},
                      {"input_activations", inputs},
                      {"output_activations", nullptr}};
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"quantization_status", "compressed"},
          {"config_groups", {{"group_0", group}}},
          {"ignore", {"lm_head"}},
          {"kv_cache_scheme", nullptr}};
}

FolderForm modelopt_form(const std::string& algorithm, int64_t group) {
  FolderForm form;
  form.quantization = {{"quant_method", "modelopt"}, {"quant_algo", algorithm}};
  if (group > 0) form.quantization["group_size"] = group;
  form.has_patterns = false;
  form.also_named = "hf_quant_config.json";
  form.also = modelopt_file;
  return form;
}

Result<int64_t> write_quantized_folder(const ModelFiles& model, const FolderForm& form,
                                       const ConvertOptions& options) {
  FT_RETURN_IF_ERROR(check_names(model, options));
  FT_ASSIGN_OR_RETURN(const ModelConfig config, read_model_config(model, {}));
  const DecoderTraits& traits = find_architecture(config.architecture)->decoder;
  if (traits.transposed) {
    return unsupported(model.text() + ": models of the architecture " + config.architecture +
                       ", whose matrices lie as [inputs, outputs], are not converted; use "
                       "--quantization fp8 while loading");
  }
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(model));
  auto tensors = model_tensors(config, traits, checkpoint);
  ModuleTensors modules = module_tensors(config, checkpoint);
  add_others(traits, checkpoint, tensors, &modules);
  tensors.insert(tensors.end(), modules.tensors.begin(), modules.tensors.end());
  FT_ASSIGN_OR_RETURN(const auto views, find_all(checkpoint, tensors, config.architecture));
  FolderConversion conversion(form, options);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (views[i]->dtype == FileDType::kOther) {
      return invalid_argument(model.text() + " is quantised already; name the model as it was");
    }
    FT_RETURN_IF_ERROR(conversion.add(tensors[i], *views[i]));
  }
  NewFolder folder(options.output);
  FT_RETURN_IF_ERROR(folder.create());
  FT_ASSIGN_OR_RETURN(const int64_t bytes, conversion.write(folder.file("model.safetensors")));
  const Json quantization = whole_quantization(form, conversion.plain(), modules);
  FT_RETURN_IF_ERROR(write_config(model, form, quantization, folder));
  FT_RETURN_IF_ERROR(copy_others(model.path(), form, folder));
  FT_RETURN_IF_ERROR(folder.commit());
  return bytes;
}

}  // namespace foretoken
