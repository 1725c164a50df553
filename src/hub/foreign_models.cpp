#include "hub/foreign_models.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string_view>
#include <vector>

#include "gguf/meta_params.h"

namespace foretoken {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSource = "use the model that it was made from, as a folder or a GGUF file";

// A form of models: what tells it, what it is called and what to do.
struct ForeignForm {
  std::string_view marker;  // of folders: a file or folder within, or "*" and how one's name ends
  const char* what;
  const char* remedy;
};

// The first that fits is taken.
constexpr ForeignForm kFolders[] = {
    {"mlc-chat-config.json", "a folder of MLC", kSource},
    {"genai_config.json", "a folder of ONNX Runtime GenAI", kSource},
    {"rank0.engine", "a folder of TensorRT-LLM engines", kSource},
    {"*.engine", "a folder of TensorRT engines", kSource},
    {"rank0.safetensors", "a checkpoint of TensorRT-LLM", kSource},
    {"shared_vocabulary.json", "a folder of CTranslate2", kSource},
    {"shared_vocabulary.txt", "a folder of CTranslate2", kSource},
    {"vocabulary.json", "a folder of CTranslate2", kSource},
    {"vocabulary.txt", "a folder of CTranslate2", kSource},
    {"qmodel.pt", "a folder that the package hqq wrote by itself",
     "save the model with transformers (save_pretrained), whose folders of HQQ are read"},
    {"zero_to_fp32.py", "a checkpoint of DeepSpeed",
     "join its parts: python zero_to_fp32.py . OUT --safe_serialization, run in it"},
    {"pytorch_model_fsdp_0", "a checkpoint of FSDP",
     "join its parts: accelerate merge-weights pytorch_model_fsdp_0 OUT"},
    {"latest_checkpointed_iteration.txt", "a checkpoint of Megatron",
     "export it in the layout of transformers"},
    {"weights/.metadata", "a checkpoint of NeMo",
     "export it in the layout of transformers (nemo llm export)"},
    {"*.nemo", "a folder with an archive of NeMo", "export it in the layout of transformers"},
    {"*.distcp", "a distributed checkpoint of PyTorch",
     "save the model in the layout of transformers (save_pretrained)"},
    {"model.weights.h5", "a model of Keras", "use the same model in the layout of transformers"},
    {"_CHECKPOINT_METADATA", "a checkpoint of Orbax (JAX)",
     "use the same model in the layout of transformers"},
    {"_METADATA", "a checkpoint of Orbax (JAX)",
     "use the same model in the layout of transformers"},
    {"original/consolidated.00.pth", "a folder whose weights lie in its folder 'original' alone",
     "name that folder, whose layout of Meta's is read"},
    {"consolidated.00.pth", "a model in its maker's own layout",
     "use the repository's *.safetensors with its config.json, or a GGUF file"},
    {"*.onnx", "a folder of ONNX graphs", kSource},
    {"onnx", "a folder of ONNX graphs", kSource},
};

// By how a file's name ends.
constexpr ForeignForm kFiles[] = {
    {".llamafile", "a llamafile",
     "take the GGUF file out of it (unzip -j FILE '*.gguf') and name that"},
    {".nemo", "an archive of NeMo", "export it in the layout of transformers"},
    {".zip", "an archive", "unpack it and name the folder or the GGUF file in it"},
    {".tar", "an archive", "unpack it and name the folder or the GGUF file in it"},
    {".tar.gz", "an archive", "unpack it and name the folder or the GGUF file in it"},
    {".tgz", "an archive", "unpack it and name the folder or the GGUF file in it"},
    {".7z", "an archive", "unpack it and name the folder or the GGUF file in it"},
    {".safetensors", "a file of weights, and no model by itself",
     "name the folder that holds it with its config.json"},
    {".pth", "a file of PyTorch in its maker's own layout",
     "use the model in the layout of transformers, or a GGUF file"},
    {".pt", "a file of PyTorch in its maker's own layout",
     "use the model in the layout of transformers, or a GGUF file"},
    {".ckpt", "a training checkpoint",
     "use the model in the layout of transformers, or a GGUF file"},
    {".onnx", "an ONNX graph", kSource},
    {".engine", "a TensorRT engine", kSource},
    {".task", "a bundle of MediaPipe", kSource},
    {".litertlm", "a model of LiteRT-LM", kSource},
    {".tflite", "a model of LiteRT", kSource},
    {".pte", "a program of ExecuTorch", kSource},
    {".mlmodel", "a model of Core ML", kSource},
    {".keras", "a model of Keras", "use the same model in the layout of transformers"},
    {".h5", "a file of Keras or TensorFlow", "use the same model in the layout of transformers"},
    {".msgpack", "a file of Flax", "use the same model in the layout of transformers"},
};

Status foreign(const std::string& path, const ForeignForm& form) {
  return unsupported(path + " is " + form.what + ", which is not read; " + form.remedy);
}

// In the layout of transformers, whose names others do not use.
bool is_usual_weight_file(const std::string& name) {
  const auto begins = [&](std::string_view with) { return name.starts_with(with); };
  if (name.ends_with(".gguf")) return true;
  if (name.ends_with(".bin")) return begins("pytorch_model");
  return name.ends_with(".safetensors") && !begins("consolidated") && !begins("adapter") &&
         !begins("rank");
}

bool has_marker(const fs::path& folder, const std::vector<std::string>& names,
                std::string_view marker) {
  std::error_code ignored;
  if (!marker.starts_with('*')) return fs::exists(folder / marker, ignored);
  return std::ranges::any_of(
      names, [&](const std::string& name) { return name.ends_with(marker.substr(1)); });
}

Status check_foreign_folder(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    names.push_back(entry.path().filename().string());
  }
  if (std::ranges::any_of(names, is_usual_weight_file)) return {};
  if (has_meta_params(folder)) return {};
  for (const ForeignForm& form : kFolders) {
    if (has_marker(folder, names, form.marker)) return foreign(folder.string(), form);
  }
  return {};
}

// Files of llama.cpp before GGUF begin with a word of its letters, the last first.
bool is_old_ggml(const std::string& path) {
  std::array<char, 4> word{};
  std::ifstream(path, std::ios::binary).read(word.data(), word.size());
  const std::string_view begin(word.data(), word.size());
  return begin == "lmgg" || begin == "fmgg" || begin == "tjgg";
}

}  // namespace

std::optional<std::string> folder_of_named_file(const std::string& path) {
  static const std::regex kUsual(
      R"(config\.json|(model|pytorch_model)([.-].*)?\.(safetensors|bin)(\.index\.json)?)");
  const fs::path file(path);
  std::error_code ignored;
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const std::string name = file.filename().string();
  if (!fs::exists(folder / "config.json", ignored)) return std::nullopt;
  if (std::regex_match(name, kUsual)) return folder.string();
  // Under a name of its own, where the folder has no other weights.
  if (!is_usual_weight_file(name) || name.ends_with(".gguf")) return std::nullopt;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string other = entry.path().filename().string();
    if (other != name && is_usual_weight_file(other)) return std::nullopt;
  }
  return folder.string();
}

Status check_foreign_model(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return check_foreign_folder(path);
  if (is_old_ggml(path)) {
    return unsupported(path +
                       " is a file of llama.cpp from before GGUF, which is not read; use the same "
                       "model as a GGUF file");
  }
  std::string name = fs::path(path).filename().string();
  std::ranges::transform(name, name.begin(), [](char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  });
  for (const ForeignForm& form : kFiles) {
    if (name.ends_with(form.marker)) return foreign(path, form);
  }
  return {};
}

}  // namespace foretoken
