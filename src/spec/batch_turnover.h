#pragma once
#include <cstdint>

namespace foretoken {

// Whether requests take the place of those that end, so that what some sequences gain lets others
// begin earlier. A batch that came together is not told from the first ones of many until one
// ended: it counts as closed until a request comes that makes it no larger than it was, and again
// once places stay empty.
class BatchTurnover {
 public:
  // A step is planned: so many requests came until now, and so many run or are about to.
  void note(uint64_t num_added, int num_sequences) {
    const auto num_new = static_cast<int>(num_added - num_added_);
    num_added_ = num_added;
    num_steps_short_ = num_sequences < full_ && num_new == 0 ? num_steps_short_ + 1 : 0;
    if (num_sequences <= num_new || num_steps_short_ > kPatience) {
      is_open_ = false;
      full_ = num_sequences;
    } else if (num_new > 0 && num_sequences <= full_) {
      is_open_ = true;
    } else if (num_sequences > full_) {
      full_ = num_sequences;
    }
  }
  bool is_open() const { return is_open_; }

 private:
  // Steps that a place may be empty. Fewer, and slow clients look like none; more, and the end of a
  // batch is slowed down.
  static constexpr int kPatience = 32;

  uint64_t num_added_ = 0;
  int full_ = 0;  // most sequences of late
  int num_steps_short_ = 0;
  bool is_open_ = false;
};

}  // namespace foretoken
