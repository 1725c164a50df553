#include "hub/foreign_models.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

void write_all(const test::ScratchFolder& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    fs::create_directories((fs::path(folder.path()) / name).parent_path());
    folder.write(name, "x");
  }
}

struct ForeignCase {
  std::vector<std::string> files;
  std::string what;
  std::string remedy;
};

TEST(ForeignModels, FoldersAreNamedWithTheRemedy) {
  const std::string source = "; use the model that it was made from, as a folder or a GGUF file";
  const ForeignCase cases[] = {
      {{"mlc-chat-config.json", "params_shard_0.bin"}, "a folder of MLC", source},
      {{"genai_config.json", "model.onnx"}, "a folder of ONNX Runtime GenAI", source},
      {{"rank0.engine", "config.json"}, "a folder of TensorRT-LLM engines", source},
      {{"llama.engine"}, "a folder of TensorRT engines", source},
      {{"rank0.safetensors", "config.json"}, "a checkpoint of TensorRT-LLM", source},
      {{"model.bin", "config.json", "vocabulary.json"}, "a folder of CTranslate2", source},
      {{"model.bin", "config.json", "vocabulary.txt"}, "a folder of CTranslate2", source},
      {{"model.bin", "shared_vocabulary.json"}, "a folder of CTranslate2", source},
      {{"model.bin", "shared_vocabulary.txt"}, "a folder of CTranslate2", source},
      {{"qmodel.pt", "config.json"}, "the package hqq", "save_pretrained"},
      {{"zero_to_fp32.py", "latest", "config.json"}, "of DeepSpeed", "python zero_to_fp32.py"},
      {{"pytorch_model_fsdp_0/__0_0.distcp"}, "of FSDP", "accelerate merge-weights"},
      {{"latest_checkpointed_iteration.txt"}, "of Megatron", "layout of transformers"},
      {{"weights/.metadata", "context/model.yaml"}, "a checkpoint of NeMo", "nemo llm export"},
      {{"model.nemo"}, "an archive of NeMo", "layout of transformers"},
      {{"__0_0.distcp", ".metadata"}, "a distributed checkpoint of PyTorch", "save_pretrained"},
      {{"model.weights.h5", "config.json"}, "a model of Keras", "layout of transformers"},
      {{"_CHECKPOINT_METADATA"}, "a checkpoint of Orbax", "layout of transformers"},
      {{"_METADATA"}, "a checkpoint of Orbax", "layout of transformers"},
      {{"original/consolidated.00.pth"}, "'original' alone", "name that folder"},
      {{"consolidated.00.pth", "config.json"}, "its maker's own layout", "*.safetensors"},
      {{"model.onnx"}, "a folder of ONNX graphs", source},
      {{"config.json", "onnx/model_q4.onnx"}, "a folder of ONNX graphs", source}};
  for (const ForeignCase& each : cases) {
    const test::ScratchFolder folder;
    write_all(folder, each.files);
    const Status status = check_foreign_model(folder.path());
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << each.files[0];
    for (const std::string& part :
         {folder.path() + " is ", each.what, std::string("which is not read"), each.remedy}) {
      EXPECT_NE(status.message().find(part), std::string::npos)
          << each.files[0] << ": " << status.message();
    }
    // Beside weights in the usual layout none of them says anything.
    folder.write("model-00001-of-00002.safetensors", "x");
    EXPECT_TRUE(check_foreign_model(folder.path()).ok()) << each.files[0];
  }
}

TEST(ForeignModels, UsualFoldersAreNoneOfThem) {
  const std::vector<std::string> folders[] = {
      {"config.json"},
      {"config.json", "params.json"},
      {"consolidated.safetensors", "params.json"},
      {"consolidated.00.pth", "params.json"},
      {"consolidated.safetensors.index.json", "params.json"},
      {"adapter_config.json", "adapter_model.safetensors"},
      {"medusa_lm_head.pt", "config.json"},
      {"model-Q4_K_M.gguf", "model.onnx"},
      {"pytorch_model.bin", "zero_to_fp32.py"}};
  for (const auto& files : folders) {
    const test::ScratchFolder folder;
    write_all(folder, files);
    EXPECT_TRUE(check_foreign_model(folder.path()).ok()) << files[0];
  }
}

TEST(ForeignModels, FilesAreNamedWithTheRemedy) {
  const std::pair<std::string, std::string> cases[] = {
      {"a.llamafile", "unzip -j FILE '*.gguf'"},
      {"a.nemo", "an archive of NeMo"},
      {"a.zip", "an archive, which is not read; unpack it"},
      {"a.tar", "unpack it"},
      {"a.TAR.GZ", "unpack it"},
      {"a.tgz", "unpack it"},
      {"a.7z", "unpack it"},
      {"a.safetensors", "name the folder that holds it with its config.json"},
      {"a.pth", "a file of PyTorch"},
      {"a.pt", "a file of PyTorch"},
      {"a.ckpt", "a training checkpoint"},
      {"a.onnx", "an ONNX graph"},
      {"a.engine", "a TensorRT engine"},
      {"a.task", "a bundle of MediaPipe"},
      {"a.litertlm", "a model of LiteRT-LM"},
      {"a.tflite", "a model of LiteRT"},
      {"a.pte", "a program of ExecuTorch"},
      {"a.mlmodel", "a model of Core ML"},
      {"a.keras", "a model of Keras"},
      {"a.h5", "a file of Keras or TensorFlow"},
      {"a.msgpack", "a file of Flax"}};
  const test::ScratchFolder folder;
  for (const auto& [name, wanted] : cases) {
    folder.write(name, "x");
    const Status status = check_foreign_model(folder.path() + "/" + name);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << name;
    EXPECT_NE(status.message().find(name + " is a"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(wanted), std::string::npos) << status.message();
  }
  for (const char* word : {"lmgg", "fmgg", "tjgg"}) {
    folder.write("ggml-model-q4_0.bin", std::string(word) + "....");
    EXPECT_NE(check_foreign_model(folder.path() + "/ggml-model-q4_0.bin")
                  .message()
                  .find("of llama.cpp from before GGUF"),
              std::string::npos);
  }
  folder.write("a.json", "x");
  EXPECT_TRUE(check_foreign_model(folder.path() + "/a.json").ok());
}

TEST(ForeignModels, FilesOfAFolderStandForIt) {
  const test::ScratchFolder folder;
  const auto folder_of = [&](const std::string& name) {
    return folder_of_named_file(folder.path() + "/" + name).value_or("");
  };
  EXPECT_EQ(folder_of("model.safetensors"), "");
  folder.write("config.json", "{}");
  for (const char* name : {"config.json", "model.safetensors", "model.fp16.safetensors",
                           "model-00001-of-00002.safetensors", "model.safetensors.index.json",
                           "pytorch_model.bin", "pytorch_model-00001-of-00002.bin"}) {
    EXPECT_EQ(folder_of(name), folder.path()) << name;
  }
  for (const char* name : {"tokenizer.json", "adapter_model.safetensors", "model.txt"}) {
    EXPECT_EQ(folder_of(name), "") << name;
  }
  // One under another name is the model where there is no other.
  folder.write("llama.safetensors", "x");
  EXPECT_EQ(folder_of("llama.safetensors"), folder.path());
  folder.write("other.safetensors", "x");
  EXPECT_EQ(folder_of("llama.safetensors"), "");
}

}  // namespace
}  // namespace foretoken
