#include <algorithm>

#include "spec/length_controller.h"

// Which sequences of a batch have room for what look-ups find: those to which they bring more than
// the room costs.

namespace foretoken {
namespace {

// Room for look-ups' drafts that takes less than 1/64 of a step is given to all. Less, and what a
// clock says decides.
constexpr int64_t kFreeRoom = 64;
// What a batch may take longer, where some of its sequences have no drafts and none come, for the
// sake of those that have: 1/1024. More, and look-ups lose to none where steps take longer than the
// table says; less, and they never begin.
constexpr int64_t kSlowest = 1024;

}  // namespace

bool LengthController::others_come(const BatchDemand& demand) {
  return demand.num_waiting > 0 || demand.num_sequences > demand.num_decoding;
}

LengthController::Gains LengthController::gains_of(int drafter, const BatchDemand& demand,
                                                   Kind kind) const {
  const DraftDemand& own = demand.drafters[static_cast<size_t>(drafter)];
  Gains gains{.counts = kind == Kind::kListed ? own.num_listed_gaining : own.num_gaining};
  if (kind == Kind::kOwn) gains.num_coming = own.num_coming;
  gains.others_come = others_come(demand);
  return gains;
}

// The sequences that gain as much as room for all of them costs, a share of it each, and those of
// them alone that gain much, or for which a long piece of text was found. Example: a step of 16
// takes 4.4 ms without room and 6.3 with room for 8 drafts each, so that a look-up must bring a
// sequence 1.9 / 4.4 = 0.43 accepted drafts a step.
std::array<LengthController::Room, 2> LengthController::rooms_of(int limit,
                                                                 const Batch& batch) const {
  const Room all{batch.num_sequences, 0};
  if (batch.gains == nullptr || limit == 0) return {all, {}};
  const int seqs = batch.load.seqs + batch.num_sequences;
  const int64_t plain = std::max<int64_t>(times_.step_ns(seqs, 0, 0), 1);
  const int64_t more = times_.step_ns(seqs, int64_t{seqs} * limit, 0) - plain;
  if (more <= plain / kFreeRoom) return {all, {}};
  constexpr int64_t kMaxGain = int64_t{LookupGain::kOne} * kMaxDraftTokens;
  const auto least = static_cast<int>(std::min(more * LookupGain::kOne / plain, kMaxGain));
  const auto room_from = [&](int min_class, int num_coming) {
    Room room{num_coming, min_class};
    for (int i = min_class; i < LookupGain::kNumClasses; ++i) {
      room.num_sequences += batch.gains->counts[static_cast<size_t>(i)];
    }
    room.num_sequences = std::min(room.num_sequences, batch.num_sequences);
    return room;
  };
  const int payable = std::max(1, LookupGain::class_of(least));
  const int sure = std::max(payable, LookupGain::class_of(LookupGain::kFound));
  return {room_from(payable, batch.gains->num_coming), room_from(sure, 0)};
}

// Whether the sequences without room end later for what those with room do to their steps, where no
// further ones come: until these have ended steps are long, and then shorter than without drafts.
// Example: of 16 sequences 6 have room for 8 drafts, of which 3 are accepted. Their 272 tokens take
// 68 steps of 5.0 ms, after which 10 sequences take 204 of 4.25 ms: 1,207 ms, and 1,191 of 4.38 ms
// each without drafts.
bool LengthController::slows_others(const Speed& speed, int64_t plain_ns,
                                    const Batch& batch) const {
  if (batch.gains == nullptr || batch.gains->others_come) return false;
  const Load& load = batch.load;
  const int num_others = load.seqs + batch.num_sequences - speed.room.num_sequences;
  if (num_others <= 0) return false;
  const int64_t rest_ns = ring_ns({num_others, load.granted, load.live, 0}, 0);
  constexpr int64_t kUnit = 256;  // products of times stay within 64 bits
  const int64_t accepted = speed.accepted * kUnit / BatchRates::kOne;
  const int64_t max_ns = plain_ns + plain_ns / kSlowest;
  return speed.ns * kUnit + rest_ns * accepted > max_ns * (kUnit + accepted);
}

}  // namespace foretoken
