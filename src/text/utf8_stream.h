#pragma once
#include <string>
#include <string_view>

namespace foretoken {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// Whether the byte stands inside a character, not at its beginning.
inline bool is_utf8_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

enum class Utf8State { kPartial, kWhole, kWrong };

// What `bytes`, not empty and one character at most, are.
Utf8State utf8_state(std::string_view bytes);

// Makes UTF-8 of bytes that come in pieces. No output ends inside a character; what is not UTF-8
// becomes U+FFFD, one for each longest beginning of a character (Unicode 15, section 3.9, "U+FFFD
// Substitution of Maximal Subparts"), as in Rust's from_utf8_lossy.
class Utf8Stream {
 public:
  // Appends to `text` what became certain.
  void push(std::string_view bytes, std::string* text);
  // Appends one U+FFFD for an incomplete character.
  void flush(std::string* text);

 private:
  void push_byte(char byte, std::string* text);

  std::string partial_;  // the beginning of a character
};

}  // namespace foretoken
