#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dialled/safetensors_writer.h"
#include "model/files/checkpoint.h"
#include "model/forward_harness.h"
#include "model/golden.h"
#include "model/heads/chain_head.h"
#include "support/scratch_folder.h"

namespace foretoken::test {

// A head of tests/golden/chain_heads whose config and tensors a test changes before it is loaded.
class ChangedChain {
 public:
  // Reads config.json of the folder and loads the head.
  using Load = std::function<Result<std::unique_ptr<ChainHead>>(
      const std::string& folder, Model& target, const DraftHeadOptions& options)>;

  ChangedChain(const std::string& name, Load load)
      : load_(std::move(load)), checkpoint_(Checkpoint::open(folder_of(name)).value()) {
    config = read_json_file(folder_of(name) + "/config.json").value();
    for (const auto& [tensor_name, view] : checkpoint_.tensors()) {
      const TensorView* source = view;
      tensors.push_back({tensor_name, view->dtype, view->shape, [source](std::byte* out) {
                           std::memcpy(out, source->data, static_cast<size_t>(source->num_bytes));
                         }});
    }
  }

  static std::string folder_of(const std::string& name) {
    return golden_folder() + "chain_heads/" + name;
  }

  TensorToWrite& tensor(const std::string& name) {
    for (TensorToWrite& tensor : tensors) {
      if (tensor.name == name) return tensor;
    }
    throw std::runtime_error("no tensor " + name);
  }
  void remove(const std::string& name) {
    std::erase_if(tensors, [&](const auto& tensor) { return tensor.name == name; });
  }
  void add(const std::string& name, const std::string& like) {
    tensors.push_back(tensor(like));
    tensors.back().name = name;
  }

  Status load(DraftHeadOptions options = {}) {
    folder_.write("config.json", config.dump());
    EXPECT_TRUE(write_safetensors(folder_.file("model.safetensors"), tensors).ok());
    target_ = load_test_model(golden_folder() + "architectures/llama", {}, 8);
    options.max_rows = options.max_logits_rows = 8;
    options.target_folder = golden_folder() + "architectures/llama";
    auto loaded = load_(folder_.path(), *target_, options);
    if (!loaded.ok()) return loaded.status();
    head = std::move(loaded).value();
    return {};
  }
  void expect_error(const std::vector<std::string>& says) {
    const Status status = load();
    ASSERT_FALSE(status.ok()) << says[0];
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    for (const std::string& part : says) {
      EXPECT_NE(status.message().find(part), std::string::npos)
          << part << " in: " << status.message();
    }
  }

  nlohmann::json config;
  std::vector<TensorToWrite> tensors;
  std::unique_ptr<ChainHead> head;
  const Model& target() const { return *target_; }

 private:
  const Load load_;
  Checkpoint checkpoint_;
  ScratchFolder folder_;
  std::unique_ptr<Model> target_;
};

}  // namespace foretoken::test
