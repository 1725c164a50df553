#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "spec/acceptance_rates.h"

namespace foretoken {

// How far steps that only decode are from what CostTable says of them. The table is measured at
// start, on a device that may be cooler or less busy than under load; what is learned here is added
// to it. By the number of sequences, in halves of powers of two (what pays for 80 need not pay for
// 128), and the drafts that each has room for. Engine thread; allocates nothing.
//
// Example: for 64 sequences with 3 drafts the table says 5.0 ms, and the last five steps took 5.6,
// 5.5, 9.0, 5.5 and 5.6. The middle one counts: a factor of 1.12, and extra_ns is 0.6 ms for 3
// drafts. Nothing is known of 5 drafts, of which the table says 6.0 ms: the nearest, with fewer,
// tell 0.72 ms by the factor and 0.6 by the difference, of which the larger counts. Of 1 draft they
// tell nothing, since steps with more drafts were slower, not faster, than the table says.
class CostFeedback {
 public:
  // Up to 8192 sequences; larger batches share the last size.
  static constexpr int kNumSizes = 28;
  static constexpr int64_t kRatioOne = 65536;
  // A step that took longer, or shorter, by more than this tells of something else than its size.
  static constexpr int64_t kMaxRatio = 8;
  // The same of a table that is rough (CostTable::is_rough).
  static constexpr int64_t kMaxRoughRatio = 64;

  // What steps of one kind take of their times in a table, for a later run with the same table.
  struct Known {
    int size = 0;  // of the batch, in halves of powers of two: 0 to kNumSizes - 1
    int drafts = 0;
    int64_t ratio = 0;  // in 1/kRatioOne, from kRatioOne / kMaxRatio to kRatioOne * kMaxRatio
    int64_t table_ns = 0;
    friend bool operator==(const Known&, const Known&) = default;
  };
  // Allocates.
  std::vector<Known> known() const;
  // Forgets all else. It is as if two such steps had been the first ones: five more outweigh them.
  // `of_guess`: the table's unit is a guess (CostTable::is_guess), so that all steps tell of their
  // neighbours by a factor.
  void begin_with(std::span<const Known> known, bool of_guess, bool of_rough = false);

  // A step of so many sequences took `ns`; the table says `table_ns`.
  void add(int num_seqs, int drafts, int64_t table_ns, int64_t ns);

  // What to add to `table_ns`. Steps like it tell by a factor. Where there were none of late, those
  // with the nearest number of drafts tell: with none by a difference, with fewer by that or a
  // factor, whichever is more, as drafts make steps slow that compute at a power limit. With more
  // by a difference that counts only where they are faster than the table says, so that a few with
  // less are tried: the cause may be in the drafts.
  int64_t extra_ns(int num_seqs, int drafts, int64_t table_ns) const;

  // Whether steps like it ran of late.
  bool knows(int num_seqs, int drafts) const {
    return num_seqs > 0 && is_known(rows_[row_of(num_seqs)][static_cast<size_t>(drafts)]);
  }

 private:
  // Steps of which the middle one counts. Fewer, and one slow step moves all; more, and a card that
  // got hot is noticed late.
  static constexpr int kMemory = 5;
  // Steps that tell already, by the shortest of them. One alone may have waited for the host.
  static constexpr int kFew = 2;
  // Steps after which a cell is tried again. Fewer, and what was slow is tried too often; more, and
  // it is never found to be fast again.
  static constexpr int64_t kForgotten = 4096;
  // The same beside a rough table: five interrupted steps in a row would stand for long.
  static constexpr int64_t kForgottenRough = 256;

  struct Cell {
    int64_t count = 0;
    std::array<int64_t, kMemory> recent{};  // of the table's time, in 1/65536
    int64_t ratio = 0;                      // of those, what counts
    int64_t table_ns = 0;                   // of the last step
    int64_t last = 0;                       // in steps that were added
  };
  using Row = std::array<Cell, kMaxDraftTokens + 1>;

  static size_t row_of(int num_seqs);
  int64_t forgotten() const { return of_rough_ ? kForgottenRough : kForgotten; }
  void add_ratio(size_t size, size_t drafts, int64_t ratio, int64_t table_ns);
  bool is_known(const Cell& cell) const {
    return cell.count >= kFew && num_added_ - cell.last <= forgotten();
  }

  std::array<Row, kNumSizes> rows_{};
  bool of_guess_ = false;
  bool of_rough_ = false;
  int max_draft_tokens_ = 0;  // of any step so far
  int64_t num_added_ = 0;
};

}  // namespace foretoken
