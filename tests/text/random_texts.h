#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/sanitizers.h"
#include "text/text_fixtures.h"

namespace foretoken {

// SplitMix64, as in tools/golden/gen_tokenizers.py.
class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}

  uint64_t operator()(uint64_t bound) {
    state_ += 0x9E3779B97F4A7C15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return (z ^ (z >> 31)) % bound;
  }

 private:
  uint64_t state_;
};

// From one of the random texts to the next that a test takes, where all of them are many.
inline constexpr size_t kTextStep = FT_UNDER_ASAN ? 5 : 1;

// The 10,000 texts that the golden files of tests/text/data/tokenizers speak of.
inline const std::vector<std::string>& random_texts() {
  static constexpr std::array<std::string_view, 48> kWords = {
      "the",
      " the",
      "hello",
      "World",
      "don't",
      "I'LL",
      "\303\251",
      "na\303\257ve",
      "\344\275\240\345\245\275",
      "\344\270\226\347\225\214",
      "\346\227\245\346\234\254\350\252\236",
      "\343\201\223\343\202\223\343\201\253\343\201\241\343\201\257",
      "\354\225\210\353\205\225",
      "\320\237\321\200\320\270\320\262\320\265\321\202",
      "\360\237\230\200",
      "\360\237\221\251\342\200\215\360\237\222\273",
      "\360\237\207\251\360\237\207\252",
      "e\314\201",
      "\302\240",
      "\343\200\200",
      "\012",
      "\012\012",
      "\015\012",
      "\011",
      "  ",
      " ",
      " ",
      ".",
      ",",
      "!?",
      "...",
      "1",
      "23",
      "4567",
      "x = [1, 2]",
      "<s>",
      "</s>",
      "<|end|>",
      "<0x41>",
      "##ing",
      "\342\226\201",
      "\357\254\201",
      "\342\205\243",
      "\303\237",
      "\304\260",
      std::string_view("\0", 1),
      "\342\200\215",
      "\357\273\277"};
  static constexpr std::array<uint64_t, 7> kLimits = {0x7f,    0x7f,    0x250,   0x3000,
                                                      0x10000, 0x20000, 0x110000};
  static const std::vector<std::string> kTexts = [] {
    SplitMix random(20261121);
    std::vector<std::string> texts(10000);
    for (std::string& text : texts) {
      for (uint64_t part = random(13); part > 0; --part) {
        if (random(4) != 0) {
          text += kWords[random(kWords.size())];
          continue;
        }
        uint64_t code = 0;
        do {
          const uint64_t limit = kLimits[random(kLimits.size())];
          code = random(limit);
        } while (code >= 0xd800 && code < 0xe000);
        append_utf8(text, static_cast<char32_t>(code));
      }
    }
    return texts;
  }();
  return kTexts;
}

}  // namespace foretoken
