#include "hub/file_pieces.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(FilePieces, NamesThatToolsGive) {
  const std::pair<std::string, std::string> pieces[] = {
      {"a/x.gguf.part1of2", "a/x.gguf"},
      {"x.gguf.part12of12", "x.gguf"},
      {"x.gguf.part-00002", "x.gguf"},
      {"x.gguf.part_aa", "x.gguf"},
      {"x.GGUF.PART1OF2", "x.GGUF"},
      {"x.Q6_K.gguf-part-b", "x.Q6_K.gguf"},
      {"x.Q6_K.gguf-split-a", "x.Q6_K.gguf"},
      {"x.gguf.split-01", "x.gguf"},
      {"x.gguf.001", "x.gguf"},
      {"x.gguf.00", "x.gguf"},
      {"x.gguf.aa", "x.gguf"},
      {"x.ggufab", "x.gguf"},
      {"model.safetensors.ab", "model.safetensors"},
  };
  for (const auto& [name, whole] : pieces) {
    const auto piece = file_piece(name);
    ASSERT_TRUE(piece.has_value()) << name;
    EXPECT_EQ(piece->whole, whole) << name;
    EXPECT_EQ(piece->whole + piece->rest, name);
  }
  for (const char* name : {"x.gguf", "x-00001-of-00002.gguf", "model-00001-of-00002.safetensors",
                           "x.part1.gguf", "qwen2.5", "llama-3.1", "model.safetensors.index.json",
                           "model.py", "v0.12/model.gguf", ""}) {
    EXPECT_FALSE(file_piece(name).has_value()) << name;
  }
}

TEST(FilePieces, TheCommandThatJoinsThem) {
  const auto command = [](const char* name) { return joining_command(*file_piece(name)); };
  EXPECT_EQ(command("x.gguf.part2of12"), "cat $(ls -v x.gguf.part*) > x.gguf");
  EXPECT_EQ(command("x.gguf-split-b"), "cat x.gguf-split-* > x.gguf");
  EXPECT_EQ(command("d/x.gguf.aa"), "cat d/x.gguf.* > d/x.gguf");
  EXPECT_EQ(command("x.gguf.002"), "cat $(ls -v x.gguf.*) > x.gguf");
  EXPECT_EQ(command("x.gguf.part_aa"), "cat x.gguf.part_* > x.gguf");
}

TEST(FilePieces, ThoseOfGgufFilesInOrder) {
  EXPECT_EQ(gguf_pieces({"b.gguf.part2of2", "a.safetensors.part1of2", "b.gguf.part1of2", "b.gguf"}),
            (std::vector<std::string>{"b.gguf.part1of2", "b.gguf.part2of2"}));
}

}  // namespace
}  // namespace foretoken
