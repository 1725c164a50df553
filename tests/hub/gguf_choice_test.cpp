#include "hub/gguf_choice.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

const std::vector<std::string> kNames = {"README.md",
                                         "m-Q8_0.gguf",
                                         "m-Q4_K_M.gguf",
                                         "m-UD-Q4_K_M.gguf",
                                         "m-Q4_K_S.gguf",
                                         "mmproj-m-F16.gguf",
                                         "BF16/m-BF16-00002-of-00002.gguf",
                                         "BF16/m-BF16-00001-of-00002.gguf",
                                         "m.IQ2_XS.GGUF"};

std::vector<std::string> chosen(const std::string& type) {
  const auto files = choose_gguf(kNames, type, "org/m");
  EXPECT_TRUE(files.ok()) << files.status().message();
  return files.ok() ? files.value() : std::vector<std::string>();
}

TEST(GgufChoice, ByTypeInAnyCase) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(chosen("Q8_0"), Names{"m-Q8_0.gguf"});
  EXPECT_EQ(chosen("q4_k_m"), Names{"m-Q4_K_M.gguf"});
  EXPECT_EQ(chosen("UD-Q4_K_M"), Names{"m-UD-Q4_K_M.gguf"});
  EXPECT_EQ(chosen("iq2_xs"), Names{"m.IQ2_XS.GGUF"});
  EXPECT_EQ(chosen(""), Names{"m-Q4_K_M.gguf"});
  EXPECT_EQ(chosen("BF16"),
            (Names{"BF16/m-BF16-00001-of-00002.gguf", "BF16/m-BF16-00002-of-00002.gguf"}));
}

TEST(GgufChoice, WithoutTheUsualTypeTheFirst) {
  const auto files = choose_gguf({"b-Q8_0.gguf", "a-Q6_K.gguf"}, "", "org/m");
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files.value().front(), "a-Q6_K.gguf");
}

TEST(GgufChoice, WhatIsMissingIsNamed) {
  const std::string none = choose_gguf(kNames, "Q4_K", "org/m").status().message();
  EXPECT_NE(none.find("of the type 'Q4_K'; there are "), std::string::npos) << none;
  EXPECT_NE(none.find("IQ2_XS"), std::string::npos) << none;
  EXPECT_EQ(none.find("mmproj"), std::string::npos) << none;
  const auto part = choose_gguf({"m-Q8_0-00001-of-00003.gguf"}, "Q8_0", "org/m");
  EXPECT_NE(part.status().message().find("1 of the 3 parts"), std::string::npos);
  EXPECT_FALSE(choose_gguf({"README.md"}, "", "org/m").ok());
}

TEST(GgufChoice, AFolderWithOneFileStandsForIt) {
  const test::ScratchFolder scratch;
  const std::string folder = scratch.path();
  EXPECT_EQ(gguf_in_folder(folder).value(), folder);
  const std::string first = scratch.write("m-00001-of-00002.gguf", "x");
  scratch.write("m-00002-of-00002.gguf", "x");
  scratch.write("mmproj-f16.gguf", "x");
  scratch.write("m-mmproj-f16.gguf", "x");
  EXPECT_EQ(gguf_in_folder(folder).value(), first);
  scratch.write("other.gguf", "x");
  const std::string several = gguf_in_folder(folder).status().message();
  EXPECT_NE(several.find("m-00001-of-00002.gguf, other.gguf"), std::string::npos) << several;
  scratch.write("config.json", "{}");
  EXPECT_FALSE(gguf_in_folder(folder).ok());
  scratch.write("model.safetensors", "x");
  EXPECT_EQ(gguf_in_folder(folder).value(), folder);
}

// As repositories with a folder for each type are downloaded; a config.json is no weights.
TEST(GgufChoice, AFolderOfATypeIsLookedInto) {
  const test::ScratchFolder scratch;
  const std::string folder = scratch.path();
  std::filesystem::create_directories(folder + "/UD-Q4_K_XL");
  std::filesystem::create_directories(folder + "/.cache");
  scratch.write(".cache/m.gguf", "x");
  const std::string first = scratch.write("UD-Q4_K_XL/m-UD-Q4_K_XL-00001-of-00002.gguf", "x");
  scratch.write("UD-Q4_K_XL/m-UD-Q4_K_XL-00002-of-00002.gguf", "x");
  EXPECT_EQ(gguf_in_folder(folder).value(), first);
  std::filesystem::create_directories(folder + "/Q8_0");
  scratch.write("Q8_0/m-Q8_0.gguf", "x");
  EXPECT_NE(gguf_in_folder(folder).status().message().find("Q8_0/m-Q8_0.gguf"), std::string::npos);
  const std::string own = scratch.write("m-F16.gguf", "x");
  scratch.write("config.json", "{}");
  EXPECT_EQ(gguf_in_folder(folder).value(), own);
}

TEST(GgufChoice, PartsInCapitalsAreOneModel) {
  const std::vector<std::string> parts = {
      "M-Q8_0-00002-OF-00003.GGUF", "M-Q8_0-00001-OF-00003.GGUF", "M-Q8_0-00003-OF-00003.GGUF"};
  const auto files = choose_gguf(parts, "q8_0", "org/m");
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_EQ(files.value(), (std::vector<std::string>{parts[1], parts[0], parts[2]}));
  const auto some = choose_gguf({parts[0], parts[1]}, "q8_0", "org/m");
  EXPECT_NE(some.status().message().find("2 of the 3 parts of " + parts[1]), std::string::npos)
      << some.status().message();
}

TEST(GgufChoice, EndingsOfPartsMayBeSpeltInSeveralWays) {
  const test::ScratchFolder scratch;
  const std::string first = scratch.write("m-00001-of-00002.gguf", "x");
  scratch.write("m-00002-of-00002.GGUF", "x");
  EXPECT_EQ(gguf_in_folder(scratch.path()).value(), first);
  scratch.write("M.gguf", "x");
  EXPECT_FALSE(gguf_in_folder(scratch.path()).ok());
}

// As large files were published before llama.cpp split them, and still are by some.
TEST(GgufChoice, PiecesOfAFileAreToBeJoined) {
  const std::vector<std::string> names = {"m.Q4_K_M.gguf", "m.Q8_0.gguf.part2of2",
                                          "m.Q8_0.gguf.part1of2", "n.Q6_K.gguf-split-a"};
  EXPECT_EQ(choose_gguf(names, "Q4_K_M", "org/m").value(), std::vector<std::string>{names[0]});
  const std::string numbered = choose_gguf(names, "Q8_0", "org/m").status().message();
  EXPECT_NE(numbered.find("has m.Q8_0.gguf cut into pieces (m.Q8_0.gguf.part1of2 and others)"),
            std::string::npos)
      << numbered;
  EXPECT_NE(choose_gguf(names, "q6_k", "org/m")
                .status()
                .message()
                .find("cat n.Q6_K.gguf-split-* > n.Q6_K.gguf"),
            std::string::npos);
  const test::ScratchFolder scratch;
  scratch.write("m.gguf.part1of2", "GGUF");
  scratch.write("m.gguf.part2of2", "x");
  const std::string folder = gguf_in_folder(scratch.path()).status().message();
  EXPECT_NE(folder.find("cut into pieces"), std::string::npos) << folder;
  scratch.write("model.safetensors", "x");
  EXPECT_TRUE(gguf_in_folder(scratch.path()).ok());
}

TEST(GgufChoice, FoldersAreNoFilesWhateverTheirNames) {
  const test::ScratchFolder scratch;
  std::filesystem::create_directory(scratch.file("model.gguf"));
  scratch.write("model.gguf/config.json", "{}");
  EXPECT_EQ(gguf_in_folder(scratch.path()).value(), scratch.path());
}

TEST(GgufChoice, OtherWeightsGoBeforeGguf) {
  EXPECT_TRUE(holds_gguf_alone({"config.json", "m-Q8_0.gguf"}));
  EXPECT_TRUE(holds_gguf_alone({"adapter_model.safetensors", "m-Q8_0.gguf"}));
  EXPECT_FALSE(holds_gguf_alone({"model.safetensors", "m-Q8_0.gguf"}));
  EXPECT_FALSE(holds_gguf_alone({"pytorch_model.bin", "m-Q8_0.gguf"}));
  EXPECT_FALSE(holds_gguf_alone({"config.json", "mmproj-F16.gguf"}));
}

}  // namespace
}  // namespace foretoken
