#include "model/files/containers/marlin_order.h"

#include <array>
#include <span>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr std::array<int64_t, 8> kOrderOf4 = {0, 2, 4, 6, 1, 3, 5, 7};
constexpr std::array<int64_t, 4> kOrderOf8 = {0, 2, 1, 3};

// Which code of the tile lies at each place, before codes are interleaved for words: lanes one
// after the other, each with four neighbours of eight codes that an instruction takes.
std::vector<int32_t> codes_by_lane() {
  std::vector<int32_t> codes;
  for (int32_t lane = 0; lane < 32; ++lane) {
    const int32_t col = lane / 4;
    for (int32_t next = 0; next < 4; ++next) {
      for (int32_t block = 0; block < 2; ++block) {
        const int32_t pair = 2 * (lane % 4);
        for (const int32_t row : {pair, pair + 1, pair + 8, pair + 9}) {
          codes.push_back(16 * row + col / 2 * 256 + 8 * (col % 2) + 4 * block + next);
        }
      }
    }
  }
  return codes;
}

std::vector<int32_t> places_of(std::span<const int64_t> interleaved) {
  const std::vector<int32_t> codes = codes_by_lane();
  std::vector<int32_t> places(codes.size());
  const auto width = std::ssize(interleaved);
  for (int64_t at = 0; at < std::ssize(codes); ++at) {
    const int64_t from = at / width * width + interleaved[static_cast<size_t>(at % width)];
    places[static_cast<size_t>(codes[static_cast<size_t>(from)])] = static_cast<int32_t>(at);
  }
  return places;
}

}  // namespace

const std::vector<int32_t>& marlin_order(int bits) {
  FT_CHECK(bits == 4 || bits == 8);
  static const std::vector<int32_t> of_4 = places_of(kOrderOf4);
  static const std::vector<int32_t> of_8 = places_of(kOrderOf8);
  return bits == 4 ? of_4 : of_8;
}

int64_t marlin_place(int64_t row, int64_t half) {
  int64_t to = row % 2 * 2 + row % 8 / 4 + row % 4 / 2 * 32 + row / 8 * 4;
  // Blocks of two rows and two words are turned.
  const bool right = to % 2 == 0 && half == 1, below = to % 2 == 1 && half == 0;
  to += right ? 1 : below ? -1 : 0;
  half -= right ? 1 : below ? -1 : 0;
  return to * 2 + half;
}

int64_t marlin_scale_of(int64_t row) {
  constexpr std::array<int64_t, 8> kPlaces = {0, 2, 4, 6, 1, 3, 5, 7};
  return row / 8 * 8 + kPlaces[static_cast<size_t>(row % 8)];
}

}  // namespace foretoken
