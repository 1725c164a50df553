#include "dialled/dialled_heads.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "model/files/checkpoint.h"
#include "model/registry.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

DialledShape small() {
  DialledShape shape;
  shape.vocab_size = 200;
  shape.num_layers = 3;
  return shape;
}

class DialledHeads : public testing::Test {
 protected:
  std::string write(const DialledHead& head, const DialledShape& shape = small()) {
    const Status status = write_dialled_head(folder_.file("head"), shape, head);
    EXPECT_TRUE(status.ok()) << status.message();
    return folder_.file("head");
  }
  ModelConfig target(const DialledShape& shape = small()) {
    EXPECT_TRUE(write_dialled_checkpoint(folder_.file("target"), shape).ok());
    return read_model_config(folder_.file("target"), {}).value();
  }
  test::ScratchFolder folder_;
};

TEST_F(DialledHeads, AreReadAsTheirKind) {
  const ModelConfig model = target();
  for (const HeadKind kind : {HeadKind::kEagle, HeadKind::kEagle3, HeadKind::kMtp}) {
    DialledHead head;
    head.kind = kind;
    head.num_modules = kind == HeadKind::kMtp ? 2 : 1;
    const std::string folder = write(head);
    const auto config = read_draft_head_config(folder, kind, model, {});
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config.value().num_modules, head.num_modules);
    EXPECT_EQ(config.value().layer.max_context, 8192);
    if (kind == HeadKind::kEagle3) {
      EXPECT_EQ(config.value().tap_layers, (std::vector<int32_t>{0, 1, 2}));
      EXPECT_EQ(config.value().draft_vocab_size, 180);
    }
  }
}

// Half of the disagreement of an EAGLE-3 head is what its vocabulary lacks.
TEST_F(DialledHeads, ReducedVocabularies) {
  for (const int32_t size : {0, 50, 200}) {
    DialledHead head;
    head.kind = HeadKind::kEagle3;
    head.agreement = 0.5;
    head.draft_vocab_size = size;
    const Checkpoint checkpoint = Checkpoint::open(write(head)).value();
    const int64_t rows = size == 0 ? 150 : size;
    const TensorView& d2t = *checkpoint.find("d2t").value();
    const TensorView& t2d = *checkpoint.find("t2d").value();
    EXPECT_EQ(d2t.shape, std::vector<int64_t>{rows});
    EXPECT_EQ(t2d.shape, std::vector<int64_t>{200});
    std::set<int64_t> ids;
    for (int64_t row = 0; row < rows; ++row) {
      int64_t offset;
      std::memcpy(&offset, d2t.data + row * 8, 8);
      ids.insert(row + offset);
      EXPECT_EQ(t2d.data[row + offset], std::byte{1});
    }
    EXPECT_EQ(static_cast<int64_t>(ids.size()), rows);
    EXPECT_GE(*ids.begin(), 0);
    EXPECT_LT(*ids.rbegin(), 200);
  }
}

// A head for a target of any architecture; MTP modules have the target's own layer.
TEST_F(DialledHeads, ForEveryArchitecture) {
  for (const std::string& name : dialled_architectures()) {
    DialledShape shape = small();
    shape.architecture = name;
    const ModelConfig model = target(shape);
    for (const HeadKind kind : {HeadKind::kEagle, HeadKind::kEagle3, HeadKind::kMtp}) {
      DialledHead head;
      head.kind = kind;
      const auto config = read_draft_head_config(write(head, shape), kind, model, {});
      EXPECT_TRUE(config.ok()) << name << ": " << config.status().message();
    }
    shape.num_mtp_modules = 2;
    EXPECT_EQ(target(shape).num_mtp_modules, 2);
  }
}

TEST_F(DialledHeads, WrongValuesAreNamed) {
  const auto refused = [&](const DialledHead& head, const DialledShape& shape, const char* part) {
    const Status status = write_dialled_head(folder_.file("head"), shape, head);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  refused({.kind = HeadKind::kEagle, .agreement = 1.5}, small(), "agreement");
  refused({.kind = HeadKind::kEagle, .num_modules = 2}, small(), "modules");
  refused({.kind = HeadKind::kMtp, .num_modules = 0}, small(), "modules");
  refused({.kind = HeadKind::kEagle3, .draft_vocab_size = 201}, small(), "draft_vocab_size");
  DialledShape narrow = small();
  narrow.hidden_size = 8;
  refused({.kind = HeadKind::kEagle}, narrow, "hidden_size");
}

}  // namespace
}  // namespace foretoken
