#pragma once
#include <initializer_list>

#include "spec/cost_table.h"

namespace foretoken::test {

inline TimeCurve curve(std::initializer_list<TimeCurve::Point> points) {
  TimeCurve made;
  for (const auto& [size, ns] : points) made.add(size, ns);
  return made;
}

}  // namespace foretoken::test
