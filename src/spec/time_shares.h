#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace foretoken {

// How much of a time another one takes, by size (rows or sequences): between two measured sizes
// linear, below the first and beyond the last as there. All of it without any.
class TimeShares {
 public:
  static constexpr int64_t kOne = 65536;
  struct Point {
    int size = 0;
    int64_t share = kOne;  // 1 to kOne
    bool operator==(const Point&) const = default;
  };

  // Sizes grow from call to call.
  void add(int size, int64_t share);
  // The share that `part` takes of `whole`, kept to 1/16 at least, as differences of times scatter.
  void add_ratio(int size, int64_t part, int64_t whole);
  int64_t at(int size) const;
  bool empty() const { return points_.empty(); }
  std::span<const Point> points() const { return points_; }
  bool operator==(const TimeShares&) const = default;

 private:
  std::vector<Point> points_;
};

}  // namespace foretoken
