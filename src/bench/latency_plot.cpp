#include "bench/latency_plot.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "bench/statistics.h"
#include "bench/svg_page.h"

namespace foretoken::bench {
namespace {

constexpr double kPanelWidth = 560;
constexpr double kPanelHeight = 300;
constexpr double kPanelLeft = 70;
constexpr double kPanelTop = 70;
constexpr double kPanelBottom = 60;
constexpr double kMarks[] = {0, 50, 90, 99, 99.9};
constexpr double kLast = 99.9;
constexpr int kNumPoints = 200;

// The place of a percentile on the axis, from 0 to 1.
double place_of(double percent) {
  const auto nines = [](double p) { return -std::log10(1 - p / 100); };
  return nines(percent) / nines(kLast);
}

struct Panel {
  std::string title;
  std::string colour;
  std::vector<double> values;  // ms, ascending
  double left;
};

void draw_axes(SvgPage& page, const Panel& panel, const std::vector<double>& marks) {
  const double bottom = kPanelTop + kPanelHeight;
  const double width = kPanelWidth - kPanelLeft - 20;
  for (const double mark : marks) {
    const double y = bottom - mark / marks.back() * kPanelHeight;
    page.line(panel.left, y, panel.left + width, y, kGridColour);
    page.text(panel.left - 8, y + 4, mark_text(mark), SvgPage::Anchor::kEnd);
  }
  for (const double percent : kMarks) {
    const double x = panel.left + place_of(percent) * width;
    page.line(x, kPanelTop, x, bottom, kGridColour);
    const std::string name = percent == 0 ? "min" : fmt::format("p{:g}", percent);
    page.text(x, bottom + 18, name, SvgPage::Anchor::kMiddle);
  }
  page.text(panel.left, kPanelTop - 12, panel.title + ", ms", SvgPage::Anchor::kStart, 13);
}

void draw_curve(SvgPage& page, const Panel& panel, const std::vector<double>& marks) {
  const double bottom = kPanelTop + kPanelHeight;
  const double width = kPanelWidth - kPanelLeft - 20;
  std::vector<std::pair<double, double>> points;
  for (int i = 0; i <= kNumPoints; ++i) {
    const double place = static_cast<double>(i) / kNumPoints;
    const double percent = 100 * (1 - std::pow(1 - kLast / 100, place));
    const double value = percentile(panel.values, percent);
    points.emplace_back(panel.left + place * width, bottom - value / marks.back() * kPanelHeight);
  }
  page.polyline(points, panel.colour);
  const std::string numbers =
      fmt::format("p50 {:.2f}, p90 {:.2f}, p99 {:.2f}, max {:.2f} ({} values)",
                  percentile(panel.values, 50), percentile(panel.values, 90),
                  percentile(panel.values, 99), panel.values.back(), panel.values.size());
  page.text(panel.left, bottom + 42, numbers);
}

void draw_panel(SvgPage& page, Panel panel) {
  std::sort(panel.values.begin(), panel.values.end());
  const std::vector<double> marks = axis_marks(percentile(panel.values, kLast), 5);
  draw_axes(page, panel, marks);
  if (!panel.values.empty()) {
    draw_curve(page, panel, marks);
  } else {
    page.text(panel.left + 20, kPanelTop + kPanelHeight / 2, "no values");
  }
}

}  // namespace

std::string latency_svg(const std::vector<RequestRecord>& records, const std::string& title) {
  Panel ttft{"Time to first token", "#4c78a8", {}, kPanelLeft};
  Panel itl{"Inter-token latency", "#54a24b", {}, kPanelWidth + kPanelLeft};
  for (const RequestRecord& record : records) {
    if (!record.success) continue;
    ttft.values.push_back(record.ttft * 1e3);
    for (const double gap : record.itls) itl.values.push_back(gap * 1e3);
  }
  SvgPage page(2 * kPanelWidth, kPanelTop + kPanelHeight + kPanelBottom);
  page.text(kPanelLeft, 25, title, SvgPage::Anchor::kStart, 16);
  draw_panel(page, std::move(ttft));
  draw_panel(page, std::move(itl));
  return page.finish();
}

}  // namespace foretoken::bench
