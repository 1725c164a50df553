#pragma once
#include <cstdint>

#include "base/host_device.h"

// Where quantised weights and the sums of their products lie, for kernels and for the host alike.
namespace foretoken::cuda {

// Quantised weights lie in units of 8 rows x 128 k: [ceil(n / 8)][ceil(k / 128)], the codes in the
// order in which lanes take them (dequant_codes.cuh), then what scales them. The units of 8 rows
// follow one another along k, so that a run of them is one bulk copy. Codes behind n and k are
// zeros.
inline constexpr int kUnitK = 128;

FT_HD constexpr int num_units(int64_t k) { return static_cast<int>((k + kUnitK - 1) / kUnitK); }

// Without scales of groups a sum over k is that of at most four parts, each one chain of products
// that begins at zero: long enough that it costs little to add them, and as many as blocks that
// share k. They depend on k alone.
inline constexpr int kMaxParts = 4, kMinPartUnits = 4;
FT_HD constexpr int part_units(int units) {
  const int share = (units + kMaxParts - 1) / kMaxParts;
  return share < kMinPartUnits ? kMinPartUnits : share;
}
FT_HD constexpr int num_parts(int units) {
  return (units + part_units(units) - 1) / part_units(units);
}

// Stage `index` of turn `turn` of a team's.
struct TeamStage {
  int turn = 0;
  int index = 0;
};

// Which units of k teams have that take runs of `turn` units in turns, each in stages of up to
// `stage` units. The threads that copy ask for every stage of every team, so that nothing here but
// counts divides.
struct TeamTurns {
  int units;  // along k
  int teams;
  int turn;
  int stage;
  int turn_stages;  // of a turn

  FT_HD constexpr TeamTurns(int in_all, int num_teams, int turn_units, int stage_units)
      : units(in_all),
        teams(num_teams),
        turn(turn_units),
        stage(stage_units),
        turn_stages((turn_units + stage_units - 1) / stage_units) {}

  FT_HD constexpr TeamStage after(TeamStage at) const {
    return at.index + 1 < turn_stages ? TeamStage{at.turn, at.index + 1}
                                      : TeamStage{at.turn + 1, 0};
  }
  // The first unit of a team's stage.
  FT_HD constexpr int unit_of(int team, TeamStage at) const {
    return (at.turn * teams + team) * turn + at.index * stage;
  }
  // How many units the stage has; 0 or less: there is no such stage, nor a later one of the team,
  // nor one of the teams behind it.
  FT_HD constexpr int units_of(int team, TeamStage at) const {
    const int end = (at.turn * teams + team + 1) * turn, last = end < units ? end : units;
    const int left = last - unit_of(team, at);
    return left < stage ? left : stage;
  }
  // Stages of the team that has the most.
  FT_HD constexpr int stages() const {
    return (units + turn * teams - 1) / (turn * teams) * turn_stages;
  }
};

// Where word `word` of a lane's lies in a unit, in words: lanes have four side by side, then what
// is left.
template <int Words>
FT_HD constexpr int place_of_word(int word, int lane) {
  const int chunk = word / 4, width = Words - chunk * 4 < 4 ? Words - chunk * 4 : 4;
  return chunk * 128 + lane * width + word % 4;
}

// Which column of a unit code `odd` of pair `pair` of a step of 16 k is, in lane 4 r + t for row r:
// as mma.sync has its operands.
FT_HD constexpr int column_of_code(int step, int pair, int odd, int t) {
  return step * 16 + pair * 8 + t * 2 + odd;
}

// Where the parts of blocks that share k meet: block r of the four of a cluster adds up those of
// the pairs of groups 2 r and 2 r + 1 of the eight that each block has. A slot is four sums of each
// lane, of 16 rows of the weight and 8 of x, of which there are `tiles`.
inline constexpr int kPairsOfRank = 2;
FT_HD constexpr int rank_of_pair(int pair) { return pair / kPairsOfRank; }
FT_HD constexpr int slot_of_part(int part, int pair, int tile, int tiles) {
  return (part * kPairsOfRank + pair % kPairsOfRank) * tiles + tile;
}

}  // namespace foretoken::cuda
