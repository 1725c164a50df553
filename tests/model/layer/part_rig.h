#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dialled/safetensors_writer.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "model/layer/part_loader.h"
#include "support/scratch_folder.h"
#include "support/test_device.h"

namespace foretoken::test {

// A tensor of random floats in a file.
struct RigTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;

  // The matrix times x, in double.
  std::vector<double> times(const std::vector<double>& x) const {
    std::vector<double> y(static_cast<size_t>(shape[0]));
    for (size_t r = 0; r < y.size(); ++r) {
      for (size_t c = 0; c < x.size(); ++c) y[r] += double(values[r * x.size() + c]) * x[c];
    }
    return y;
  }
};

// Tests of the parts of layers: a file with random tensors, and rows on the device that go through
// what is loaded from it.
class PartTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (test_device() == nullptr) return;
    config_.hidden_size = 8;
    config_.rms_norm_eps = 1e-5f;
    arena_.emplace(device(), MemoryKind::kDevice);
  }

  RigTensor& add(const std::string& name, std::vector<int64_t> shape) {
    RigTensor tensor{std::move(shape), {}};
    int64_t count = 1;
    for (const int64_t extent : tensor.shape) count *= extent;
    tensor.values.resize(static_cast<size_t>(count));
    fill_random(name, count, 0.5f, DType::kF32, tensor.values.data());
    return tensors_[name] = std::move(tensor);
  }

  // What load(PartLoader&, Part*) makes for a rank, on the device.
  template <class Part, class Load>
  Part load_part(const Load& load, const NormForm& norms = {}, const Sharding& sharding = {}) {
    std::vector<TensorToWrite> all;
    for (const auto& [name, tensor] : tensors_) {
      all.push_back({name, FileDType::kF32, tensor.shape, [&tensor](std::byte* out) {
                       std::memcpy(out, tensor.values.data(), tensor.values.size() * 4);
                     }});
    }
    EXPECT_TRUE(write_safetensors(folder_.file("model.safetensors"), all).ok());
    const Checkpoint checkpoint = Checkpoint::open(folder_.path()).value();
    Part part;
    const auto loader =
        WeightLoader::create(device(), &checkpoint, DType::kF32, 0, {}, nullptr).value();
    PartLoader parts(*arena_, config_, norms, *loader, sharding);
    const Status status = load(parts, &part);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(loader->finish().ok());
    unused_ = loader->check_all_used("the test").message();
    return part;
  }

  LayerRows rows_of(int32_t num_rows, std::vector<int32_t> positions = {}) {
    positions.resize(static_cast<size_t>(num_rows));
    return {queue(), to_device(std::vector<StepCounts>{{num_rows, 0, 0, 0}}), to_device(positions),
            to_device(std::vector<int32_t>(positions.size(), 0)), num_rows};
  }
  ScratchSource scratch_source(int32_t max_rows) {
    return {device(), *find_attention_backend("auto", device()).value(), *arena_, DType::kF32,
            max_rows};
  }

  // Rows of random numbers on the device, and the first of them in double.
  const float* random_rows(int32_t num_rows, int32_t cols, std::vector<double>* first) {
    std::vector<float> x(static_cast<size_t>(num_rows * cols));
    foretoken::fill_random("x", num_rows * cols, 0.8f, DType::kF32, x.data());
    first->assign(x.begin(), x.begin() + cols);
    return to_device(x);
  }
  void expect_near(const float* device_row, const std::vector<double>& want, double limit = 1e-5) {
    const std::vector<float> got = read(device_row, want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], limit) << i;
  }

  ModelConfig config_;
  ScratchFolder folder_;
  std::map<std::string, RigTensor> tensors_;
  std::optional<Arena> arena_;
  std::string unused_;  // what check_all_used says after load_part
};

}  // namespace foretoken::test
