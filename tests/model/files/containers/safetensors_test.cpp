#include "model/files/containers/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "model/files/forms/convert.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using test::ScratchFolder;

// A file with this header text (its length may be given wrongly) and zero data bytes.
std::string make_file(const std::string& header, size_t data_bytes, int64_t header_bytes = -1) {
  const uint64_t length = header_bytes < 0 ? header.size() : static_cast<uint64_t>(header_bytes);
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data_bytes, '\0');
}

struct BadFile {
  const char* name;
  std::string content;
  std::vector<std::string> said;  // parts of the message
};

const std::string kTwo = R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                         R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[16,24]}})";

std::vector<BadFile> bad_files() {
  return {
      {"Empty", "", {"header length", "fetch it again"}},
      {"Short", "abc", {"header length"}},
      {"Gguf",
       std::string("GGUF\3\0\0\0\0\0\0", 11),
       {"it is a GGUF file", "give this file itself"}},
      {"Torch",
       std::string("PK\3\4\24\0\0\0\0\0\0", 11),
       {"it is a file of PyTorch", "pytorch_model.bin"}},
      {"HugeHeader", make_file("{}", 0, int64_t{1} << 60), {"1152921504606846976", "does not fit"}},
      {"HeaderPastEnd", make_file("{}", 0, 64), {"header length 64", "does not fit"}},
      {"BrokenJson", make_file("{\"a\":", 0), {"(header)", "not valid JSON"}},
      {"NotAnObject", make_file("[1]", 0), {"JSON object"}},
      {"Truncated", make_file(kTwo, 20), {"tensor 'b'", "24", "holds 20", "fetch it again"}},
      {"BytesAfterTheEnd", make_file(kTwo, 30), {"6 bytes after the last tensor"}},
      {"UnknownType",
       make_file(R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4),
       {"tensor 'a'", "unknown dtype 'F31'", "convert"}},
      {"ShapeAndBytesDiffer",
       make_file(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,16]}})", 16),
       {"tensor 'a'", "[3]", "needs 12 bytes", "give 16"}},
      {"NegativeShape",
       make_file(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
       {"tensor 'a'", "impossible shape"}},
      {"OverflowingShape",
       make_file(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
                 0),
       {"impossible shape"}},
      {"BackwardOffsets",
       make_file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})", 8),
       {"impossible data_offsets"}},
      {"HugeOffsets",
       make_file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]}})", 4),
       {"impossible data_offsets"}},
      {"MissingField",
       make_file(R"({"a":{"dtype":"F32","shape":[1]}})", 4),
       {"tensor 'a'", "missing"}},
      {"Overlap",
       make_file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                 R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                 12),
       {"tensor 'b'", "overlaps tensor 'a'"}},
      {"Gap",
       make_file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                 R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                 12),
       {"tensor 'b'", "gap after tensor 'a'"}},
      {"Duplicate",
       make_file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                 R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                 4),
       {"'a' appears twice"}},
  };
}

class SafetensorsBadFile : public testing::TestWithParam<BadFile> {};

TEST_P(SafetensorsBadFile, IsRefusedWithItsName) {
  const ScratchFolder folder;
  const std::string path = folder.write("model.safetensors", GetParam().content);
  const auto file = SafetensorsFile::open(path);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(file.status().message().find(path), std::string::npos) << file.status().message();
  for (const std::string& part : GetParam().said) {
    EXPECT_NE(file.status().message().find(part), std::string::npos)
        << file.status().message() << "\nlacks: " << part;
  }
}
INSTANTIATE_TEST_SUITE_P(All, SafetensorsBadFile, testing::ValuesIn(bad_files()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Safetensors, ReadsTypesShapesAndData) {
  const ScratchFolder folder;
  std::string content = make_file(kTwo, 24);
  const float value = 2.5f;
  std::memcpy(content.data() + 8 + kTwo.size() + 4, &value, 4);
  const auto opened = SafetensorsFile::open(folder.write("x.safetensors", content));
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const auto& tensors = opened.value()->tensors();
  ASSERT_EQ(tensors.size(), 2u);
  const TensorView& a = tensors.at("a");
  EXPECT_EQ(a.dtype, FileDType::kF32);
  EXPECT_EQ(a.shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(a.shape_text(), "[2, 2]");
  EXPECT_EQ(a.num_elements(), 4);
  float read = 0;
  std::memcpy(&read, a.data + 4, 4);
  EXPECT_EQ(read, value);
  read = 0;
  ASSERT_TRUE(a.read(4, 4, &read).ok());
  EXPECT_EQ(read, value);
  EXPECT_EQ(a.element_bytes(), 4);
  EXPECT_EQ(tensors.at("b").dtype, FileDType::kBF16);
}

TEST(Safetensors, AcceptsMetadataAndEmptyTensors) {
  const ScratchFolder folder;
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("a":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]},)"
                             R"("b":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})";
  const auto file = SafetensorsFile::open(folder.write("x.safetensors", make_file(header, 8)));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file.value()->tensors().at("a").num_elements(), 0);
  EXPECT_EQ(file.value()->tensors().at("b").dtype, FileDType::kI64);
  EXPECT_EQ(file.value()->metadata().at("format"), "pt");
}

TEST(Safetensors, MissingFileIsNotFound) {
  const auto file = SafetensorsFile::open("/nonexistent/model.safetensors");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), StatusCode::kNotFound);
  EXPECT_NE(file.status().message().find("/nonexistent/model.safetensors"), std::string::npos);
}

// Every prefix of a good file is refused, never read beyond its end.
TEST(Safetensors, EveryTruncationIsRefused) {
  const ScratchFolder folder;
  const std::string content = make_file(kTwo, 24);
  for (size_t size = 0; size < content.size(); ++size) {
    const std::string path = folder.write("x.safetensors", content.substr(0, size));
    EXPECT_FALSE(SafetensorsFile::open(path).ok()) << size;
  }
}

// Floats of 64 bits are rounded while they are read.
TEST(Safetensors, ReadsFloatsOf64Bits) {
  const double numbers[] = {1.5, -0.1, 1e-40};
  std::string content = make_file(R"({"a":{"dtype":"F64","shape":[3],"data_offsets":[0,24]}})", 24);
  std::memcpy(content.data() + content.size() - 24, numbers, 24);
  const test::ScratchFolder folder;
  const auto file = SafetensorsFile::open(folder.write("m.safetensors", content));
  ASSERT_TRUE(file.ok()) << file.status().message();
  float values[3];
  const TensorView& tensor = file.value()->tensors().at("a");
  ASSERT_TRUE(check_convertible(tensor).ok());
  ASSERT_TRUE(convert_tensor(tensor, DType::kF32, values).ok());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values[i], static_cast<float>(numbers[i]));
}

}  // namespace
}  // namespace foretoken
