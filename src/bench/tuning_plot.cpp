#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>

#include "bench/draft_tuning.h"
#include "bench/svg_page.h"

namespace foretoken::bench {
namespace {

constexpr double kBarHeight = 18;
constexpr double kBarGap = 6;
constexpr double kNames = 170;
constexpr double kBars = 460;
constexpr double kHead = 64;
constexpr double kPanelHead = 34;
constexpr double kMargin = 70;

using Lengths = std::vector<const TunedLength*>;

double height_of(const Lengths& lengths) {
  return kPanelHead + static_cast<double>(lengths.size()) * (kBarHeight + kBarGap) + 24;
}

void draw_marks(SvgPage& page, const std::vector<double>& marks, double top, double bottom) {
  for (const double mark : marks) {
    const double x = kNames + mark / marks.back() * kBars;
    page.line(x, top, x, bottom, kGridColour);
    page.text(x, bottom + 14, mark_text(mark), SvgPage::Anchor::kMiddle, 11);
  }
}

void draw_bar(SvgPage& page, const TunedLength& length, double top, double scale) {
  const double middle = top + kBarHeight / 2;
  page.rect(kNames, top, length.ratio * scale, kBarHeight, length.low > 1 ? "#4c78a8" : "#bab0ac");
  page.line(kNames + length.low * scale, middle, kNames + length.high * scale, middle, "#333333");
  page.text(kNames - 8, middle + 4,
            fmt::format("{}, K = {}", length.drafter, length.num_draft_tokens),
            SvgPage::Anchor::kEnd);
  page.text(kNames + length.high * scale + 6, middle + 4, fmt::format("{:.2f}", length.ratio));
}

void draw_batch_panel(SvgPage& page, int batch_size, const Lengths& lengths, double top,
                      const std::vector<double>& marks) {
  const double scale = kBars / marks.back();
  const double first = top + kPanelHead;
  const double bottom = first + static_cast<double>(lengths.size()) * (kBarHeight + kBarGap);
  page.text(kNames, top + 20, fmt::format("{} at once", batch_size), SvgPage::Anchor::kStart, 13);
  draw_marks(page, marks, first - 6, bottom);
  for (size_t i = 0; i < lengths.size(); ++i) {
    draw_bar(page, *lengths[i], first + static_cast<double>(i) * (kBarHeight + kBarGap), scale);
  }
  page.line(kNames + scale, first - 6, kNames + scale, bottom, "#e45756", 1.5);
}

}  // namespace

std::string tuning_svg(const std::vector<TunedLength>& lengths, const std::string& title) {
  std::map<int, Lengths> panels;
  double largest = 1;
  double height = kHead;
  for (const TunedLength& length : lengths) {
    panels[length.batch_size].push_back(&length);
    largest = std::max(largest, length.high);
  }
  for (const auto& [batch_size, panel] : panels) height += height_of(panel);
  const std::vector<double> marks = axis_marks(largest, 5);
  SvgPage page(kNames + kBars + kMargin, height);
  page.text(20, 26, title, SvgPage::Anchor::kStart, 16);
  page.text(20, 46, "Speed over that without drafts (red line); grey: not shown to be faster");
  double top = kHead;
  for (const auto& [batch_size, panel] : panels) {
    draw_batch_panel(page, batch_size, panel, top, marks);
    top += height_of(panel);
  }
  return page.finish();
}

}  // namespace foretoken::bench
