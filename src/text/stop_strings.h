#pragma once
#include <foretoken/request.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foretoken {

// Looks for stop strings in streamed text, one owner at a time. The result does not depend on how
// the text is cut into pieces. The stop string that is complete first wins; of several complete at
// the same byte, the longest. In reasoning at the text's beginning none is looked for: clients that
// stop an answer at "Question:" do not mean a thought about the question.
class StopStrings {
 public:
  struct Output {
    std::string text;               // safe to show; empty while a stop string may be beginning
    std::optional<size_t> matched;  // index of the stop string that ended the text
  };

  // kInvalidArgument for an empty stop string. `include_in_output` leaves the stop string at the
  // end of the text instead of cutting it off.
  static Result<StopStrings> create(std::vector<std::string> stops, bool include_in_output,
                                    const ReasoningMarkers& reasoning = {});

  // After a match everything further is ignored. looks: false where no stop string counts yet.
  Output append(std::string_view piece, bool looks = true);

  // The end of the stream: what was held back, up to a stop string in it.
  std::string flush();

  bool stopped() const { return stopped_; }

 private:
  // One text with the state of its Knuth-Morris-Pratt automaton.
  struct Matcher {
    std::string stop;
    std::vector<size_t> border;  // longest proper border of each prefix
    size_t matched = 0;          // bytes of `stop` that end the text seen so far

    bool advance(char byte);
  };
  enum class Place { kBeginning, kReasoning, kAnswer };

  static Matcher matcher_of(std::string text);
  void find_beginning(std::string_view text);
  void advance_reasoning(char byte);
  std::optional<size_t> advance(char byte);
  size_t num_held() const;

  std::vector<Matcher> matchers_;
  std::vector<std::string> opens_;
  std::vector<Matcher> closes_;
  Place place_ = Place::kAnswer;
  size_t num_passed_ = 0;  // bytes of an undecided beginning in which no stop string counts
  bool include_in_output_ = false;
  bool stopped_ = false;
  std::string held_;
};

}  // namespace foretoken
