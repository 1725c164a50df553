#include "gguf/container/gguf_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include <cstring>

#include "gguf/gguf_bytes.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

class GgufFileTest : public ::testing::Test {
 protected:
  const test::ScratchFolder folder_;
};

TEST_F(GgufFileTest, TypedValues) {
  test::GgufBytes bytes(0, 5);
  bytes.text_value("text", "x").u32_value("size", 7).key("real", 6).number(0.5F);
  bytes.key("huge", 10).number(UINT64_MAX);
  bytes.key("many", 9).number(uint32_t{5}).number(uint64_t{1}).number(int32_t{-3}).align();
  const auto file = GgufFile::open(bytes.write(folder_.file("typed.gguf")));
  ASSERT_TRUE(file.ok()) << file.status().message();
  const GgufFile& gguf = *file.value();
  EXPECT_EQ(gguf.text("text").value(), "x");
  EXPECT_EQ(gguf.integer("size").value(), 7);
  EXPECT_EQ(gguf.number("size").value(), 7.0);
  EXPECT_EQ(gguf.number("real").value(), 0.5);
  EXPECT_EQ(gguf.integers("many").value(), std::vector<int64_t>{-3});
  EXPECT_EQ(gguf.numbers("many").value(), std::vector<double>{-3});
  EXPECT_EQ(gguf.text("nothing").value(), std::nullopt);
  EXPECT_EQ(gguf.texts("nothing").value(), nullptr);
  EXPECT_TRUE(gguf.integers("nothing").value().empty());
  const std::string wanted = gguf.path() + ": 'huge' must be an integer";
  EXPECT_EQ(gguf.integer("huge").status().message().substr(0, wanted.size()), wanted);
  EXPECT_FALSE(gguf.integer("real").ok());
  EXPECT_FALSE(gguf.text("size").ok());
  EXPECT_FALSE(gguf.flag("size").ok());
  EXPECT_FALSE(gguf.texts("many").ok());
  EXPECT_FALSE(gguf.integers("text").ok());
}

TEST_F(GgufFileTest, ErrorsNameTheFile) {
  EXPECT_EQ(GgufFile::open(folder_.file("missing.gguf")).status().code(), StatusCode::kNotFound);
  const std::string empty = test::GgufBytes(9, 9).write(folder_.file("short.gguf"));
  const Status status = GgufFile::open(empty).status();
  EXPECT_EQ(status.message().find(empty + ": it ends too early"), 0u) << status.message();
}

TEST_F(GgufFileTest, ReadsBytes) {
  const auto file = GgufFile::open(test::golden_gguf("llama.gguf"));
  ASSERT_TRUE(file.ok());
  GgufTensor tensor = file.value()->tensors().at("output_norm.weight");
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.num_bytes));
  ASSERT_TRUE(file.value()->read(tensor, bytes.data()).ok());
  EXPECT_EQ(std::memcmp(bytes.data(), tensor.part->file->memory() + tensor.offset, bytes.size()),
            0);
  tensor.offset = int64_t{1} << 30;
  EXPECT_FALSE(file.value()->read(tensor, bytes.data()).ok());
}

// A part of a model of `count`, with one tensor.
std::string write_part(const std::string& path, uint32_t index, uint32_t count,
                       const std::string& tensor) {
  test::GgufBytes bytes(1, index == 0 ? 4 : 3);
  if (index == 0) bytes.text_value("general.architecture", "llama");
  bytes.key("split.no", 2).number(static_cast<uint16_t>(index));
  bytes.key("split.count", 2).number(static_cast<uint16_t>(count));
  bytes.key("split.tensors.count", 5).number(int32_t{2});
  bytes.tensor(tensor, {1}, 0, 0).align();
  return bytes.number(static_cast<float>(index + 1)).align().write(path);
}

TEST_F(GgufFileTest, AnyPartStandsForAll) {
  const std::string first = folder_.file("m-00001-of-00002.gguf");
  const std::string second = folder_.file("m-00002-of-00002.gguf");
  write_part(first, 0, 2, "one");
  const Status missing = GgufFile::open(first).status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_EQ(missing.message(), "part 2 of 2 is missing: " + second + "; put it beside the others");
  write_part(second, 1, 2, "two");
  for (const std::string& path : {first, second}) {
    const auto file = GgufFile::open(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file.value()->text("general.architecture").value(), "llama");
    float value = 0;
    ASSERT_TRUE(file.value()->read(file.value()->tensors().at("two"), &value).ok());
    EXPECT_EQ(value, 2);
    EXPECT_EQ(file.value()->tensors().at("one").part->path, first);
  }
}

TEST_F(GgufFileTest, PartsAreFoundByNamesAsTheyAreSpelt) {
  for (const char* form : {"M-0000%d-OF-00002.GGUF", "m-0000%d-of-00002.GGUF", "n-%d-of-2.gguf"}) {
    std::string paths[2];
    for (const int number : {1, 2}) {
      std::string name = form;
      name.replace(name.find("%d"), 2, std::to_string(number));
      paths[number - 1] = folder_.file(name);
      write_part(paths[number - 1], static_cast<uint32_t>(number - 1), 2, number == 1 ? "a" : "b");
    }
    for (const std::string& path : paths) {
      const auto file = GgufFile::open(path);
      ASSERT_TRUE(file.ok()) << file.status().message();
      EXPECT_EQ(file.value()->tensors().at("a").part->path, paths[0]);
      EXPECT_EQ(file.value()->tensors().at("b").part->path, paths[1]);
    }
  }
}

TEST_F(GgufFileTest, PartsMaySpellTheirEndingsEachItsWay) {
  const std::string first = folder_.file("m-00001-of-00002.gguf");
  const std::string second = folder_.file("m-00002-of-00002.GGUF");
  write_part(first, 0, 2, "one");
  write_part(folder_.file("n-00002-of-00002.gguf"), 1, 2, "three");
  write_part(second, 1, 2, "two");
  for (const std::string& path : {first, second}) {
    const auto file = GgufFile::open(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file.value()->tensors().at("one").part->path, first);
    EXPECT_EQ(file.value()->tensors().at("two").part->path, second);
  }
}

TEST_F(GgufFileTest, PartsThatDoNotFitAreNamed) {
  const std::string first = folder_.file("m-00001-of-00002.gguf");
  const std::string second = folder_.file("m-00002-of-00002.gguf");
  const auto error = [&](const std::string& path) {
    return GgufFile::open(path).status().message();
  };
  write_part(first, 0, 2, "one");
  write_part(second, 1, 2, "one");
  EXPECT_NE(error(first).find("the tensor 'one' is in"), std::string::npos) << error(first);
  write_part(second, 0, 2, "two");
  EXPECT_NE(error(first).find("is not part 2 of the 2"), std::string::npos) << error(first);
  write_part(second, 1, 3, "two");
  EXPECT_NE(error(first).find("is not part 2 of the 2"), std::string::npos) << error(first);
  const std::string other = folder_.file("model.gguf");
  write_part(other, 1, 2, "two");
  const std::string ending = "part 2 of 2, whose name must end so: -00002-of-00002.gguf;";
  EXPECT_NE(error(other).find(ending), std::string::npos) << error(other);
}

TEST(GgufSplitName, NamesOfParts) {
  const auto name = gguf_split_name("a/b-00002-of-00005.GGUF");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->name, "a/b");
  EXPECT_EQ(name->number, 2);
  EXPECT_EQ(name->part(5), "a/b-00005-of-00005.GGUF");
  EXPECT_EQ(gguf_split_name("B-00002-OF-00003.GGUF")->part(1), "B-00001-OF-00003.GGUF");
  EXPECT_EQ(gguf_split_name("b-1-of-12.gguf"), std::nullopt);
  EXPECT_EQ(gguf_split_name("b-01-of-12.gguf")->part(9), "b-09-of-12.gguf");
  EXPECT_EQ(gguf_split_name("a-00001-of-00003.gguf/b.gguf"), std::nullopt);
  for (const char* other : {"b.gguf", "b-00000-of-00002.gguf", "b-00003-of-00002.gguf",
                            "b-0001-of-00002.gguf", "-00001-of-00002.gguf", ""}) {
    EXPECT_FALSE(gguf_split_name(other).has_value()) << other;
  }
}

TEST(IsGguf, ByTheEndingOrTheFront) {
  const test::ScratchFolder folder;
  EXPECT_TRUE(is_gguf(folder.write("sha256-4d7a", "GGUF....")));
  EXPECT_FALSE(is_gguf(folder.write("config.json", "{}")));
  EXPECT_FALSE(is_gguf(folder.path()));
  std::filesystem::create_directory(folder.file("model.gguf"));
  EXPECT_FALSE(is_gguf(folder.file("model.gguf")));
  EXPECT_TRUE(is_gguf("a/b.gguf"));
  EXPECT_TRUE(is_gguf("a/B.GGUF"));
  EXPECT_FALSE(is_gguf("a/b"));
}

}  // namespace
}  // namespace foretoken
