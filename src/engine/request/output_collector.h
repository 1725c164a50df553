#pragma once
#include <foretoken/request.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// Sums up the outputs of one request, choice by choice. One thread at a time.
class OutputCollector {
 public:
  explicit OutputCollector(const Request& request);

  void add(const RequestOutput& output);
  // Every choice gets the error.
  void fail(const Status& status);
  // The sums in order of choices.
  std::vector<RequestOutput> take() { return std::move(sums_); }

 private:
  std::vector<RequestOutput> sums_;
};

}  // namespace foretoken
