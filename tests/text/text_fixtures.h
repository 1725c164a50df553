#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "support/folders.h"
#include "text/tokenizer.h"

namespace foretoken {

// A model folder of tests/text/data: "byte_level" or "sentencepiece".
inline std::filesystem::path data_folder(std::string_view name) {
  return std::filesystem::path(foretoken::kSourceFolder) / "tests/text/data" / name;
}

inline std::unique_ptr<Tokenizer> load_fixture(const std::filesystem::path& folder) {
  auto loaded = load_hf_tokenizer(folder);
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return std::move(loaded).value();
}

// 64-bit FNV-1a in hexadecimal: how golden files name long results.
inline std::string fnv1a(std::string_view bytes) {
  uint64_t value = 0xcbf29ce484222325;
  for (const char byte : bytes) value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

inline void append_utf8(std::string& out, char32_t c) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | (c >> 6));
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | (c >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | (c >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

// Up to `max_length` characters: letters, spaces, line breaks, accents, CJK, emoji, anything.
inline std::string random_text(std::mt19937& rng, int max_length) {
  static constexpr std::u32string_view kUsual =
      U"the hello in  .,!\n\té你好ß😀👩‍💻🇩🇪";
  std::string text;
  const int length = static_cast<int>(rng() % static_cast<unsigned>(max_length + 1));
  for (int i = 0; i < length; ++i) {
    char32_t c = kUsual[rng() % kUsual.size()];
    if (rng() % 8 == 0) c = rng() % 0x110000;
    if (c >= 0xd800 && c < 0xe000) c = U'x';
    append_utf8(text, c);
  }
  return text;
}

// Whether `text` is whole UTF-8 characters (well-formed lead and continuation bytes).
inline bool is_whole_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t size = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (size == 0 || i + size > text.size()) return false;
    for (size_t k = 1; k < size; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
    }
    i += size;
  }
  return true;
}

}  // namespace foretoken
