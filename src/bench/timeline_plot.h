#pragma once
#include <array>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/request_record.h"

namespace foretoken::bench {

// Upper limits in ms of fast and of middling gaps between chunks.
using ItlThresholds = std::array<double, 2>;

// "25,50", ascending.
Result<ItlThresholds> parse_itl_thresholds(const std::string& text);

// The requests as rows over the time, as an SVG: waiting, time to the first token, then the gaps
// between chunks, coloured by the thresholds. Failed requests have a red mark.
std::string timeline_svg(const std::vector<RequestRecord>& records, const std::string& title,
                         const ItlThresholds& thresholds);

}  // namespace foretoken::bench
