#pragma once
#include <string>
#include <vector>

#include "serve/answer/output_sum.h"
#include "serve/answer/serve_error.h"

namespace foretoken {

// How one protocol tells what came of an HTTP request, whole or as a stream of events. One thread
// at a time; one of the two ways.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;

  // Whether streams are lines of JSON instead of server-sent events: nothing may stand between
  // them.
  virtual bool streams_lines() const { return false; }

  // The body of a whole answer: one finished, faultless sum for each engine request.
  virtual std::string whole(const std::vector<const OutputSum*>& sums) = 0;
  // The body of an answer that is an error.
  virtual std::string error(const ServeError& error) = 0;

  // What is new about a choice of engine request number `request`, as events; may be empty.
  virtual std::string events(size_t request, const ChoiceOutput& news) = 0;
  // The last events, after every choice has finished.
  virtual std::string last_events() = 0;
  // The last events of a stream that breaks.
  virtual std::string error_events(const ServeError& error) = 0;
};

}  // namespace foretoken
