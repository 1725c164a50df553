#include "base/files/text_file.h"

#include <gtest/gtest.h>

#include <string>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

TEST(TextFile, ReadsAllBytes) {
  test::ScratchFolder folder;
  const std::string content("a\0b\r\n\xff", 6);
  auto read = read_text_file(folder.write("file", content));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value(), content);
}

TEST(TextFile, NamesTheMissingFile) {
  test::ScratchFolder folder;
  for (const auto& path : {folder.file("nothing"), folder.path()}) {
    auto read = read_text_file(path);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.status().code(), StatusCode::kNotFound);
    EXPECT_NE(read.status().message().find(path), std::string::npos);
  }
}

// In the place of a file: what a clone without Git LFS has, and what a host sends for a page.
TEST(TextFile, WhatWasFetchedInstead) {
  const test::ScratchFolder folder;
  const std::pair<const char*, const char*> cases[] = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "git lfs pull"},
      {"<!DOCTYPE html><html><body>Sign in</body></html>", "is a web page"},
      {"<HTML><head></head></HTML>", "is a web page"},
  };
  for (const auto& [content, wanted] : cases) {
    const auto text = read_text_file(folder.write("tokenizer.json", content));
    ASSERT_FALSE(text.ok()) << content;
    EXPECT_EQ(text.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(text.status().message().find("tokenizer.json: it is"), std::string::npos);
    EXPECT_NE(text.status().message().find(wanted), std::string::npos) << text.status().message();
  }
  for (const char* content : {"", "{}", "<|im_start|>", "<h", "version 2"}) {
    EXPECT_EQ(what_was_fetched(content), "") << content;
    EXPECT_TRUE(read_text_file(folder.write("a.json", content)).ok()) << content;
  }
}

TEST(TextFile, Utf16IsTold) {
  const test::ScratchFolder folder;
  for (const char* content : {"\xFF\xFE{", "\xFE\xFF{"}) {
    const auto text = read_text_file(folder.write("config.json", content));
    ASSERT_FALSE(text.ok());
    EXPECT_NE(text.status().message().find("config.json: it is UTF-16"), std::string::npos);
  }
}

// As editors on Windows begin a text.
TEST(TextFile, AByteOrderMarkIsNoPartOfIt) {
  const test::ScratchFolder folder;
  const auto text = read_text_file(folder.write("a.jinja", "\xEF\xBB\xBF{{ x }}\xEF\xBB\xBF"));
  EXPECT_EQ(text.value(), "{{ x }}\xEF\xBB\xBF");
  EXPECT_EQ(plain_text("\xEF\xBB\xBF", "stdin").value(), "");
  EXPECT_EQ(plain_text("\xEF\xBB", "stdin").value(), "\xEF\xBB");
  EXPECT_NE(plain_text("\xFF\xFEO", "stdin").status().message().find("stdin: it is UTF-16"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken
