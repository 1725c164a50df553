#pragma once
#include <string>
#include <vector>

#include "apps/options/prompt_item.h"
#include "serve/answer/output_sum.h"

namespace foretoken {

// Turns outputs into what stdout shows, in the order of the prompts: text as it grows, or one JSON
// line for each finished request.
class OutputPrinter {
 public:
  // `items` must outlive this.
  OutputPrinter(const std::vector<PromptItem>& items, bool json) : items_(items), json_(json) {}

  // What is new for stdout; messages of failed requests are added to `errors`.
  std::string take(const std::vector<OutputSum>& outputs, std::vector<std::string>* errors);

  bool any_failed() const { return any_failed_; }

 private:
  std::string new_text(size_t i, const OutputSum& sum);
  std::string new_choice_text(size_t i, const RequestOutput& choice, bool several);

  const std::vector<PromptItem>& items_;
  const bool json_;
  size_t current_ = 0;
  size_t choice_ = 0;     // of the current output
  bool started_ = false;  // the head of the current choice was shown
  size_t num_shown_ = 0;  // bytes of the current text
  bool any_failed_ = false;
};

}  // namespace foretoken
