#pragma once
#include <cstdint>

#include "base/host_device.h"
#include "base/philox.h"

namespace foretoken {

// Why a sequence ended, as the device found it.
enum class DeviceFinish : int32_t { kNone = 0, kStop = 1, kLength = 2, kError = 3 };

// Purpose of the noise that decides over drafts (kernels/sampling/sample.h has the others).
inline constexpr uint32_t kAcceptDraft = 1;

}  // namespace foretoken

// Here it is decided which drafts a sequence keeps and which ids it gets. The CPU and the CUDA
// kernel of kernels/step/verify_and_commit.h call these functions; docs/speculation.md proves that
// the rule `coupled` leaves the text as it is without drafts. Integers alone: every device decides
// the same.
//
// Example: a sequence of 20 tokens has the drafts 5 7 9, and the target sampled 5 7 2 4. Two drafts
// are accepted, and the text goes on with 5 7 2: the third id is the target's own, and the 4 behind
// the rejected draft is dropped. Where 7 is a stop id the sequence ends as 5 7 (kStop); with a
// max_len of 22 it does so too (kLength). Had all drafts been accepted, the 4 were the bonus token.
namespace foretoken::spec {

// The drafts of one sequence, and what the target sampled in place of each and behind the last.
struct Verification {
  const int32_t* drafts;     // [num_draft_tokens]
  const int32_t* sampled;    // [num_draft_tokens + 1]; -1: the row has no valid probability
  int32_t num_draft_tokens;  // that are decided over
};

// By what a draft is accepted.
struct AcceptanceRule {
  // Null: the rule `coupled`, a draft is what the target sampled in its place. Otherwise the rule
  // `synthetic` (for benchmarks, the text is not the target's): [drafts] chance of a draft whose
  // predecessors were accepted, in 2^-32; ~0 is always.
  const uint32_t* synthetic;
  uint64_t seed;     // of the sequence; these three serve `synthetic` alone
  int32_t choice;    // index among the choices of one request
  int32_t position;  // of the first draft
};

// The random draw of the rule `synthetic`, word 0 of Philox with counter (0, position, choice,
// kAcceptDraft) and the seed as key: it depends on the position and on no step.
FT_HD inline bool draw_accepts(const AcceptanceRule& rule, int32_t draft) {
  const uint32_t chance = rule.synthetic[draft];
  if (chance == UINT32_MAX) return true;
  return philox4x32(0, static_cast<uint32_t>(rule.position + draft),
                    static_cast<uint32_t>(rule.choice), kAcceptDraft, rule.seed)
             .v[0] < chance;
}

// The number of leading drafts that are accepted: all before the first that is not.
FT_HD inline int32_t count_accepted(const Verification& v, const AcceptanceRule& rule) {
  int32_t accepted = 0;
  while (accepted < v.num_draft_tokens) {
    const bool accepts = rule.synthetic == nullptr ? v.drafts[accepted] == v.sampled[accepted]
                                                   : draw_accepts(rule, accepted);
    if (!accepts) break;
    ++accepted;
  }
  return accepted;
}

// What ends a sequence.
struct SequenceEnd {
  const int32_t* stop_ids;  // [num_stop_ids]
  int32_t num_stop_ids;
  int32_t max_len;  // in tokens, prompt included
};

FT_HD inline bool is_stop_id(const SequenceEnd& end, int32_t id) {
  for (int32_t i = 0; i < end.num_stop_ids; ++i) {
    if (end.stop_ids[i] == id) return true;
  }
  return false;
}

struct Appended {
  int32_t num_ids;
  DeviceFinish finish;
};

// Writes to `ids` what a sequence of `len` tokens goes on with: the accepted drafts and the id that
// the target sampled behind them, `max_ids` at most (num_accepted + 1, or fewer). It is cut after
// the first stop id (kStop, the id is kept), where the length reaches max_len (kLength; stop wins
// over length), and before a sampled -1 (kError).
FT_HD inline Appended append_accepted(const Verification& v, int32_t num_accepted, int32_t max_ids,
                                      int32_t len, const SequenceEnd& end, int32_t* ids) {
  int32_t count = 0;
  while (count < max_ids) {
    const int32_t id = count < num_accepted ? v.drafts[count] : v.sampled[count];
    if (id < 0) return {count, DeviceFinish::kError};
    ids[count++] = id;
    if (is_stop_id(end, id)) return {count, DeviceFinish::kStop};
    if (len + count >= end.max_len) return {count, DeviceFinish::kLength};
  }
  return {count, DeviceFinish::kNone};
}

}  // namespace foretoken::spec
