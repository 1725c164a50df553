#include "text/utf8_stream.h"

#include <algorithm>

namespace foretoken {
Utf8State utf8_state(std::string_view bytes) {
  const auto lead = static_cast<unsigned char>(bytes[0]);
  const size_t size = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (size == 0 || lead > 0xf4) return Utf8State::kWrong;
  for (size_t i = 1; i < bytes.size(); ++i) {
    if (!is_utf8_continuation(bytes[i])) return Utf8State::kWrong;
  }
  if (bytes.size() > 1) {
    const auto second = static_cast<unsigned char>(bytes[1]);
    const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
    const bool outside = (lead == 0xed && second > 0x9f) || (lead == 0xf4 && second > 0x8f);
    if (overlong || outside) return Utf8State::kWrong;
  }
  return bytes.size() < size ? Utf8State::kPartial : Utf8State::kWhole;
}

void Utf8Stream::push(std::string_view bytes, std::string* text) {
  size_t at = 0;
  while (at < bytes.size()) {
    if (!partial_.empty()) {
      push_byte(bytes[at++], text);
      continue;
    }
    const auto is_ascii = [](char byte) { return static_cast<unsigned char>(byte) < 0x80; };
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = std::find_if_not(begin, bytes.end(), is_ascii);
    text->append(begin, end);
    at += static_cast<size_t>(end - begin);
    if (at < bytes.size()) push_byte(bytes[at++], text);
  }
}

void Utf8Stream::push_byte(char byte, std::string* text) {
  partial_ += byte;
  switch (utf8_state(partial_)) {
    case Utf8State::kPartial:
      return;
    case Utf8State::kWhole:
      *text += partial_;
      break;
    case Utf8State::kWrong:
      *text += kReplacementCharacter;
      if (partial_.size() > 1) {
        partial_.clear();
        return push_byte(byte, text);
      }
      break;
  }
  partial_.clear();
}

void Utf8Stream::flush(std::string* text) {
  if (!partial_.empty()) *text += kReplacementCharacter;
  partial_.clear();
}

}  // namespace foretoken
