#include "kernels/gemm/cuda/dequant_units.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "kernels/gemm/cuda/dequant_ints.h"
#include "kernels/gemm/host_pairs.h"

namespace foretoken::cuda {
namespace {

TEST(DequantUnits, PartsCoverEveryUnitOnce) {
  for (int units = 1; units < 300; ++units) {
    const int count = num_parts(units), size = part_units(units);
    ASSERT_LE(count, kMaxParts);
    ASSERT_GE(size, kMinPartUnits);
    ASSERT_LT((count - 1) * size, units);
    ASSERT_GE(count * size, units);
  }
  EXPECT_EQ(part_units(num_units(4096)), 8);
  EXPECT_EQ(part_units(num_units(14336)), 28);
  EXPECT_EQ(num_parts(num_units(1280)), 3);
}

// Each unit is of one stage, and a turn has the units of one part, in order.
TEST(DequantUnits, TeamsHaveEveryUnitOnce) {
  for (const int teams : {1, 2, 4}) {
    for (const int stage : {1, 2, 4}) {
      for (int units = 1; units < 130; ++units) {
        const TeamTurns turns(units, teams, part_units(units), stage);
        std::vector<int> takers(size_t(units), 0);
        int most = 0;
        for (int team = 0; team < teams; ++team) {
          int index = 0;
          TeamStage at;
          for (; turns.units_of(team, at) > 0; ++index, at = turns.after(at)) {
            const int first = turns.unit_of(team, at), count = turns.units_of(team, at);
            ASSERT_LE(count, stage);
            ASSERT_GT(turns.units_of(0, at), 0);
            for (int unit = first; unit < first + count; ++unit) {
              takers.at(size_t(unit)) += 1;
              ASSERT_EQ(unit / part_units(units), at.turn * teams + team);
            }
          }
          most = std::max(most, index);
        }
        ASSERT_EQ(takers, std::vector<int>(size_t(units), 1)) << units << " units";
        ASSERT_LE(most, turns.stages());
        ASSERT_LT(turns.stages() - most, turns.turn_stages);
      }
    }
  }
}

template <int Words>
void expect_one_place_each() {
  std::set<int> places;
  for (int lane = 0; lane < 32; ++lane) {
    for (int word = 0; word < Words; ++word) places.insert(place_of_word<Words>(word, lane));
  }
  EXPECT_EQ(places.size(), size_t(Words * 32));
  EXPECT_EQ(*places.rbegin(), Words * 32 - 1);
}

TEST(DequantUnits, WordsOfLanesFillAUnit) {
  expect_one_place_each<2>();
  expect_one_place_each<4>();
  expect_one_place_each<5>();
  expect_one_place_each<6>();
  expect_one_place_each<8>();
}

// A product of 128 rows of a weight as blocks of two warpgroups make it (gemm_dequant_split.cuh):
// what each lane loads, widens and hands to the tensor cores, what these do with it, and where the
// parts of four blocks meet. Numbers are small, so that sums are exact in any order.
template <int Group, bool HasZeros>
class SplitProduct {
  using Codes = Int4Codes<HasZeros>;
  using Scales = IntScales<4, Group, HasZeros ? IntOffset::kZeros : IntOffset::kMiddle>;
  static constexpr int kRows = 128, kTiles = 2, kColumns = kTiles * 8;
  static constexpr int kUnitBytes = Codes::kCodeBytes + Scales::kBytes;

 public:
  explicit SplitProduct(int k) : k_(k), units_(num_units(k)) {
    std::mt19937 random(7);
    const auto draw = [&](int count) { return static_cast<int>(random() % unsigned(count)); };
    for (int i = 0; i < kRows * k; ++i) codes_.push_back(draw(16));
    for (int i = 0; i < kRows * k / Group; ++i) {
      powers_.push_back(draw(4) - 2);
      zeros_.push_back(HasZeros ? draw(17) : 8);
    }
    for (int i = 0; i < kColumns * k; ++i) x_.push_back(draw(9) - 4);
    pack();
  }

  double weight(int row, int column) const {
    const size_t group = size_t(row * (k_ / Group) + column / Group);
    return (codes_[size_t(row * k_ + column)] - zeros_[group]) * std::ldexp(1.0, powers_[group]);
  }
  double want(int row, int column) const {
    double sum = 0;
    for (int i = 0; i < k_; ++i) sum += weight(row, i) * x_[size_t(column * k_ + i)];
    return sum;
  }

  // [row of x][row of the weight]
  std::vector<double> product(bool apart) {
    std::vector<double> y(size_t(kColumns) * kRows, -1);
    const int splits = apart ? kMaxParts : 1;
    // Of each block, in the order of slots and lanes.
    const size_t floats = size_t(kMaxParts * kPairsOfRank * kTiles * 32 * 4);
    std::vector<std::vector<double>> slots(size_t(splits), std::vector<double>(floats, 0.5));
    for (int rank = 0; rank < splits; ++rank) {
      const int begin = apart ? std::min(units_, rank * part_units(units_)) : 0;
      const int end = apart ? std::min(units_, begin + part_units(units_)) : units_;
      for (int warp = 0; warp < 8 && begin < end; ++warp) {
        std::vector<double> sums(kTiles * 32 * 4);
        for (int unit = begin; unit < end; ++unit) multiply(sums, warp, unit);
        if (!apart) {
          for (int tile = 0; tile < kTiles; ++tile) store(y, warp, tile, &sums[size_t(tile) * 128]);
          continue;
        }
        for (int tile = 0; tile < kTiles; ++tile) {
          double* to = &slots[size_t(rank_of_pair(warp))]
                             [size_t(slot_of_part(rank, warp, tile, kTiles)) * 128];
          std::copy_n(&sums[size_t(tile) * 128], 128, to);
        }
      }
    }
    for (int rank = 0; apart && rank < splits; ++rank) {
      for (int i = 0; i < kPairsOfRank * kTiles; ++i) {
        const int tile = i % kTiles, pair = rank * kPairsOfRank + i / kTiles;
        std::vector<double> sum(128);
        for (int part = 0; part < num_parts(units_); ++part) {
          const double* from =
              &slots[size_t(rank)][size_t(slot_of_part(part, pair, tile, kTiles)) * 128];
          for (int j = 0; j < 128; ++j) sum[size_t(j)] += from[j];
        }
        store(y, pair, tile, sum.data());
      }
    }
    return y;
  }

 private:
  uint8_t* unit_at(int group, int unit) {
    return memory_.data() + size_t(group * units_ + unit) * kUnitBytes;
  }
  // As a thread of pack_quantized_kernel: its word, and the scales of its row.
  void pack() {
    memory_.resize(size_t(kRows / 8 * units_) * kUnitBytes);
    for (int row = 0; row < kRows; ++row) {
      for (int i = 0; i < units_ * 16; ++i) pack_word(row, i / 16, i % 4, i / 4 % 4);
      for (int group = 0; group < k_ / Group; ++group) pack_scale(row, group);
    }
  }
  void pack_word(int row, int unit, int t, int word) {
    uint32_t bits = 0;
    for (int step = word * 2; step < word * 2 + 2; ++step) {
      for (int i = 0; i < 4; ++i) {
        const int column = unit * kUnitK + column_of_code(step, i / 2, i % 2, t);
        bits |= Codes::place(uint32_t(codes_[size_t(row * k_ + column)]), step, i / 2, i % 2);
      }
    }
    const int place = place_of_word<4>(word, row % 8 * 4 + t);
    std::memcpy(unit_at(row / 8, unit) + place * 4, &bits, 4);
  }
  void pack_scale(int row, int group) {
    const int unit = group * Group / kUnitK, own = group % Scales::kBases;
    uint8_t* to = unit_at(row / 8, unit) + Codes::kCodeBytes;
    const size_t at = size_t(row * (k_ / Group) + group);
    const auto power = static_cast<uint16_t>((127 + powers_[at]) << 7);
    const uint16_t scale = int_scale_bits(power, Scales::kPlace);
    std::memcpy(to + Scales::scale_place(row % 8, own), &scale, 2);
    if (HasZeros) to[Scales::zero_place(row % 8, own)] = uint8_t(zeros_[at]);
  }

  // A warp's 16 rows and 8 steps of 16 k of a unit.
  void multiply(std::vector<double>& sums, int warp, int unit) {
    double a[16][kUnitK];
    for (int lane = 0; lane < 32; ++lane) widen(a, warp, unit, lane);
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < kTiles * 4; ++i) {
        const int row = lane / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        double& sum = sums[size_t((i / 4 * 32 + lane) * 4 + i % 4)];
        for (int j = 0; j < kUnitK; ++j) {
          sum += a[row][j] * kSmallRowScale * x_[size_t(column * k_ + unit * kUnitK + j)];
        }
      }
    }
  }
  // What a lane's registers of operand A are to the tensor cores: register i has row lane / 4, and
  // 8 more when i is odd, columns 2 t and 2 t + 1 of a step, and 8 more from i = 2 on.
  void widen(double (&a)[16][kUnitK], int warp, int unit, int lane) {
    for (int i = 0; i < 2; ++i) {
      const uint8_t* from = unit_at(warp * 2 + i, unit);
      uint32_t words[4];
      std::memcpy(words, from + lane * 16, sizeof words);
      Scales scales;
      scales.load(from + Codes::kCodeBytes, lane / 4);
      for (int step = 0; step < 8; ++step) {
        const IntBase base = scales.template base_of<HostPairs>(step / (8 / Scales::kBases));
        uint32_t b[2];
        Codes::template widen_by<HostPairs>(words, step, base, b);
        const uint32_t registers[4] = {i == 0 ? b[0] : 0, i == 1 ? b[0] : 0, i == 0 ? b[1] : 0,
                                       i == 1 ? b[1] : 0};
        for (int r = i; r < 4; r += 2) {
          const int row = lane / 4 + r % 2 * 8, column = step * 16 + lane % 4 * 2 + r / 2 * 8;
          a[row][column] = HostPairs::value(registers[r]);
          a[row][column + 1] = HostPairs::value(registers[r] >> 16);
        }
      }
    }
  }
  // As take_tiles of an epilogue.
  static void store(std::vector<double>& y, int pair, int tile, const double* sums) {
    for (int i = 0; i < 128; ++i) {
      const int lane = i / 4, row = tile * 8 + lane % 4 * 2 + i % 2;
      y[size_t(row * kRows + pair * 16 + lane / 4 + i % 4 / 2 * 8)] = sums[i];
    }
  }

  int k_;
  int units_;
  std::vector<int> codes_, powers_, zeros_, x_;
  alignas(16) std::vector<uint8_t> memory_;
};

template <int Group, bool HasZeros>
void expect_product(int k) {
  SplitProduct<Group, HasZeros> own(k);
  for (const bool apart : {false, true}) {
    const std::vector<double> y = own.product(apart);
    for (int row = 0; row < 128; ++row) {
      for (int column = 0; column < 16; ++column) {
        ASSERT_EQ(y[size_t(column * 128 + row)], own.want(row, column))
            << "row " << row << " column " << column << (apart ? " apart" : "");
      }
    }
  }
}

TEST(DequantUnits, LanesMultiplyWhatRowsHave) {
  expect_product<32, false>(1280);
  expect_product<128, false>(512);
  expect_product<32, true>(2048);
  expect_product<128, true>(1280);
}

}  // namespace
}  // namespace foretoken::cuda
