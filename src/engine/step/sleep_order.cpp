#include "engine/step/sleep_order.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace foretoken {
namespace {

// An outcome as it travels; longer messages are cut.
struct OutcomeCard {
  int64_t bytes = 0;
  StatusCode code = StatusCode::kOk;
  std::array<bool, 3> away = {};  // weights, lost ones, blocks
  std::array<char, 500> message = {};
};

OutcomeCard card_of(const SleepOutcome& outcome) {
  OutcomeCard card{outcome.bytes,
                   outcome.status.code(),
                   {outcome.weights_are_away, outcome.weights_are_lost, outcome.blocks_are_away},
                   {}};
  const std::string& message = outcome.status.message();
  std::copy_n(message.begin(), std::min(message.size(), card.message.size() - 1),
              card.message.begin());
  return card;
}

}  // namespace

Result<SleepOutcome> outcome_of_all(group::RankLink& link, const SleepOutcome& own) {
  const OutcomeCard mine = card_of(own);
  std::vector<OutcomeCard> cards(static_cast<size_t>(link.size()));
  FT_RETURN_IF_ERROR(link.all_gather(std::as_bytes(std::span(&mine, 1)),
                                     std::as_writable_bytes(std::span(cards)),
                                     "memory that is given back or taken again"));
  SleepOutcome all;
  for (size_t rank = 0; rank < cards.size(); ++rank) {
    const OutcomeCard& card = cards[rank];
    all.bytes += card.bytes;
    all.weights_are_away |= card.away[0];
    all.weights_are_lost |= card.away[1];
    all.blocks_are_away |= card.away[2];
    if (card.code == StatusCode::kOk || !all.status.ok()) continue;
    all.status = {card.code, "rank " + std::to_string(rank) + ": " + card.message.data()};
  }
  return all;
}

}  // namespace foretoken
