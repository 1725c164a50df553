#include "gguf/container/front_reader.h"

#include <gtest/gtest.h>

#include <random>

#include "base/files/text_file.h"
#include "gguf/gguf_bytes.h"

namespace foretoken {
namespace {

using test::GgufBytes;

Result<GgufFront> read(const std::string& bytes) {
  return read_gguf_front(std::as_bytes(std::span(bytes)));
}

std::string problem(const std::string& bytes) {
  const auto front = read(bytes);
  return front.ok() ? "" : front.status().message();
}

TEST(GgufFront, ReadsValuesAndTensors) {
  GgufBytes bytes(2, 4);
  bytes.text_value("name", "x").u32_value("size", 7);
  bytes.key("list", 9).number(uint32_t{6}).number(uint64_t{2}).number(0.5F).number(-1.0F);
  bytes.key("flag", 7).number(uint8_t{1});
  bytes.tensor("a", {4, 2}, 0, 0).tensor("b", {32}, 8, 32).align();
  std::string file = bytes.bytes() + std::string(32 + 34, 'z');
  const auto front = read(file);
  ASSERT_TRUE(front.ok()) << front.status().message();
  EXPECT_EQ(std::get<std::string>(front.value().metadata.at("name")), "x");
  EXPECT_EQ(std::get<uint64_t>(front.value().metadata.at("size")), 7u);
  EXPECT_EQ(std::get<std::vector<double>>(front.value().metadata.at("list")),
            (std::vector<double>{0.5, -1}));
  EXPECT_TRUE(std::get<bool>(front.value().metadata.at("flag")));
  EXPECT_EQ(front.value().tensors.at("a").shape, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(front.value().tensors.at("b").num_bytes, 34);
  file.pop_back();
  EXPECT_NE(problem(file).find("'b' ends behind the file"), std::string::npos);
}

TEST(GgufFront, DataLieApartFromAlignedBytesOn) {
  const auto placed = [](uint64_t first, uint64_t second, uint32_t alignment) {
    GgufBytes bytes(2, 1);
    bytes.u32_value("general.alignment", alignment);
    bytes.tensor("a", {4, 2}, 0, first).tensor("b", {32}, 8, second).align();
    return problem(bytes.bytes() + std::string(256, 'z'));
  };
  EXPECT_EQ(placed(0, 32, 32), "");
  EXPECT_EQ(placed(64, 0, 32), "");
  EXPECT_NE(placed(0, 33, 32).find("'b' do not begin where they may"), std::string::npos);
  EXPECT_NE(placed(0, 48, 32).find("'b' do not begin where they may"), std::string::npos);
  EXPECT_NE(placed(0, 16, 16).find("lie over those of another"), std::string::npos);
  EXPECT_NE(placed(0, 0, 32).find("do not begin where they may"), std::string::npos);
  EXPECT_NE(placed(0, 33, 3).find("general.alignment is impossible"), std::string::npos);
}

// A scale behind all rows belongs to the tensor.
TEST(GgufFront, TernaryTensorsOfBitnetHaveATail) {
  const auto placed = [](const char* architecture, uint64_t second, size_t bytes) {
    GgufBytes file(2, 1);
    file.text_value("general.architecture", architecture);
    file.tensor("a", {128, 2}, 36, 0).tensor("b", {2}, 0, second).align();
    return problem(file.bytes() + std::string(bytes, 'z'));
  };
  EXPECT_EQ(placed("bitnet-b1.58", 96, 104), "");
  EXPECT_NE(placed("bitnet-b1.58", 64, 104).find("lie over those of another"), std::string::npos);
  EXPECT_NE(placed("llama", 96, 104).find("in order for one processor"), std::string::npos);
  GgufBytes last(1, 1);
  last.text_value("general.architecture", "bitnet").tensor("a", {128, 2}, 36, 0).align();
  EXPECT_EQ(problem(last.bytes() + std::string(96, 'z')), "");
  EXPECT_NE(problem(last.bytes() + std::string(95, 'z')).find("'a' ends behind the file"),
            std::string::npos);
}

TEST(GgufFront, NamesWhatIsWrong) {
  const auto with_tensor = [](auto shape, uint32_t type, uint64_t offset) {
    return GgufBytes(1).tensor("w", shape, type, offset).align().bytes();
  };
  using Shape = std::initializer_list<uint64_t>;
  const std::pair<std::string, const char*> cases[] = {
      {"GGML", "does not begin with GGUF"},
      {std::string("\2\0\0\0\0\0\0\0{}", 10), "it is a safetensors file"},
      {std::string("\3\0\0\0\0\0\0\0{}", 10), "does not begin with GGUF"},
      {"GGUF", "GGUF version 0"},
      {GgufBytes(0, 0, 1).bytes(), "GGUF version 1"},
      {GgufBytes(0, 0, 0x03000000).bytes(), "(big-endian)"},
      {GgufBytes(UINT64_MAX, 0).bytes(), "ends too early"},
      {GgufBytes(0, UINT64_MAX).bytes(), "ends too early"},
      {GgufBytes(0, 1).key("k", 13).number(uint64_t{0}).bytes(), "unknown type 13"},
      {GgufBytes(0, 1).key("k", 9).number(uint32_t{9}).number(uint64_t{0}).bytes(),
       "unknown type 9"},
      {GgufBytes(0, 1).key("k", 9).number(uint32_t{8}).number(UINT64_MAX).bytes(),
       "ends too early"},
      {GgufBytes(0, 2).u32_value("k", 1).u32_value("k", 1).bytes(), "'k' comes twice"},
      {GgufBytes(0, 1).u32_value("general.alignment", 0).bytes(), "general.alignment"},
      {GgufBytes(2).tensor("w", {}, 0, 0).tensor("w", {}, 0, 0).bytes(), "'w' comes twice"},
      {with_tensor(Shape{1, 1, 1, 1, 1}, 0, 0), "5 dimensions"},
      {with_tensor(Shape{UINT64_MAX}, 0, 0), "impossible shape"},
      {with_tensor(Shape{1ULL << 40, 1ULL << 40}, 0, 0), "impossible shape"},
      {with_tensor(Shape{33}, 8, 0), "no whole blocks of Q8_0"},
      {with_tensor(Shape{1}, 99, 0), "unknown type 99"},
      {with_tensor(Shape{1}, 137, 0), "ik_llama.cpp's own (137)"},
      {with_tensor(Shape{1}, 31, 0), "no longer reads"},
      {GgufBytes(1, 1)
           .text_value("general.architecture", "bitnet-b1.58")
           .tensor("w", Shape{128}, 37, 0)
           .align()
           .bytes(),
       "bitnet.cpp's own"},
      {with_tensor(Shape{1ULL << 62}, 0, 0), "does not fit"},
      {with_tensor(Shape{1}, 0, UINT64_MAX), "does not fit"},
  };
  for (const auto& [bytes, wanted] : cases) {
    EXPECT_NE(problem(bytes).find(wanted), std::string::npos) << problem(bytes) << " / " << wanted;
  }
}

// Cut anywhere and with any bytes changed, a file gives an error or something that fits into it.
TEST(GgufFront, DamagedFilesAreJudged) {
  const auto text = read_text_file(test::golden_gguf("llama.gguf"));
  ASSERT_TRUE(text.ok());
  const std::string whole = text.value().substr(0, 6000);
  std::mt19937 random(1);
  int num_errors = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = round % 2 == 0 ? whole.substr(0, random() % whole.size()) : whole;
    for (int i = 0; i < round % 4 && !bytes.empty(); ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const auto front = read(bytes);
    num_errors += front.ok() ? 0 : 1;
    if (!front.ok()) continue;
    for (const auto& [name, tensor] : front.value().tensors) {
      EXPECT_LE(tensor.offset + tensor.num_bytes, std::ssize(bytes)) << name;
    }
  }
  EXPECT_GT(num_errors, 2000);
}

}  // namespace
}  // namespace foretoken
