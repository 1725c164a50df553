#include "bench/timeline_plot.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>

#include "bench/svg_page.h"

namespace foretoken::bench {
namespace {

constexpr double kWidth = 1200;
constexpr double kLeft = 70;
constexpr double kRight = 30;
constexpr double kTop = 70;
constexpr double kBottom = 50;
constexpr double kMaxRows = 1400;     // pixels
constexpr double kLeastWidth = 0.75;  // pixels of a bar; narrower ones are joined

constexpr const char* kWaiting = "#d9d9d9";
constexpr const char* kFirstToken = "#4c78a8";
constexpr const char* kFast = "#54a24b";
constexpr const char* kMiddling = "#f2a33a";
constexpr const char* kSlow = "#d62728";

// Draws the bars of one row from left to right; a bar too narrow to see is joined with the ones
// behind it and takes the colour of the slowest.
class Row {
 public:
  Row(SvgPage& page, double x, double y, double height)
      : page_(page), begin_(x), y_(y), height_(height) {}
  ~Row() { flush(); }

  // `rank`: a colour of a higher one covers a lower one.
  void extend(double end, int rank, const char* colour) {
    const bool narrow = end_ - begin_ < kLeastWidth;
    if (colour_ != nullptr && colour_ != colour && !narrow) flush();
    if (colour_ == nullptr || rank > rank_) {
      colour_ = colour;
      rank_ = rank;
    }
    end_ = end;
  }

 private:
  void flush() {
    if (colour_ == nullptr || end_ <= begin_) return;
    page_.rect(begin_, y_, std::max(end_ - begin_, kLeastWidth), height_, colour_);
    begin_ = end_;
    colour_ = nullptr;
    rank_ = 0;
  }

  SvgPage& page_;
  double begin_;
  double y_;
  double height_;
  double end_ = begin_;
  const char* colour_ = nullptr;
  int rank_ = 0;
};

double end_of(const RequestRecord& record) { return record.start_time + record.latency; }

void draw_record(SvgPage& page, const RequestRecord& record, const ItlThresholds& thresholds,
                 double pixels_per_s, double y, double height) {
  const auto place = [&](double time) { return kLeft + time * pixels_per_s; };
  {
    Row row(page, place(record.start_time - record.queue_time), y, height);
    row.extend(place(record.start_time), 0, kWaiting);
    double time = record.start_time + record.ttft;
    if (record.num_chunks() > 0) row.extend(place(time), 1, kFirstToken);
    for (const double gap : record.itls) {
      time += gap;
      const int speed = gap * 1e3 <= thresholds[0] ? 0 : gap * 1e3 <= thresholds[1] ? 1 : 2;
      constexpr const char* kColours[] = {kFast, kMiddling, kSlow};
      row.extend(place(time), 2 + speed, kColours[speed]);
    }
  }
  if (record.success) return;
  const double x = place(end_of(record));
  const double half = std::clamp(height / 2, 2.0, 5.0);
  const double middle = y + height / 2;
  page.line(x - half, middle - half, x + half, middle + half, kSlow, 1.5);
  page.line(x - half, middle + half, x + half, middle - half, kSlow, 1.5);
}

void draw_legend(SvgPage& page, const ItlThresholds& thresholds) {
  const std::pair<const char*, std::string> entries[] = {
      {kWaiting, "waiting in the client"},
      {kFirstToken, "to the first token"},
      {kFast, fmt::format("gap up to {:g} ms", thresholds[0])},
      {kMiddling, fmt::format("up to {:g} ms", thresholds[1])},
      {kSlow, "longer"},
  };
  double x = kLeft;
  for (const auto& [colour, words] : entries) {
    page.rect(x, 40, 12, 12, colour);
    page.text(x + 17, 50, words);
    x += 40 + 6.5 * static_cast<double>(words.size());
  }
  page.text(x, 50, "\xC3\x97 failed", SvgPage::Anchor::kStart, 12, kSlow);
}

}  // namespace

Result<ItlThresholds> parse_itl_thresholds(const std::string& text) {
  ItlThresholds thresholds{};
  int used = 0;
  const int count = std::sscanf(text.c_str(), "%lf ,%lf %n", &thresholds[0], &thresholds[1], &used);
  const bool whole = count == 2 && static_cast<size_t>(used) == text.size();
  if (whole && thresholds[0] > 0 && thresholds[1] >= thresholds[0]) return thresholds;
  return invalid_argument(
      "--timeline-itl-thresholds takes two ascending times in ms like 25,50, not '" + text + "'");
}

std::string timeline_svg(const std::vector<RequestRecord>& records, const std::string& title,
                         const ItlThresholds& thresholds) {
  std::vector<const RequestRecord*> rows;
  double end = 0;
  for (const RequestRecord& record : records) {
    rows.push_back(&record);
    end = std::max(end, end_of(record));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto* a, const auto* b) { return a->start_time < b->start_time; });
  const double row_height =
      std::clamp(kMaxRows / std::max<double>(1, static_cast<double>(rows.size())), 0.1, 14.0);
  const double height = std::max(60.0, row_height * static_cast<double>(rows.size()));
  SvgPage page(kWidth, kTop + height + kBottom);
  const std::vector<double> marks = axis_marks(end, 10);
  const double pixels_per_s = (kWidth - kLeft - kRight) / marks.back();
  page.text(kLeft, 25, title, SvgPage::Anchor::kStart, 16);
  draw_legend(page, thresholds);
  for (const double mark : marks) {
    const double x = kLeft + mark * pixels_per_s;
    page.line(x, kTop, x, kTop + height, kGridColour);
    page.text(x, kTop + height + 18, mark_text(mark), SvgPage::Anchor::kMiddle);
  }
  page.text(kWidth / 2, kTop + height + 38, "seconds since the start", SvgPage::Anchor::kMiddle);
  page.text(kLeft - 8, kTop + 10, "1", SvgPage::Anchor::kEnd);
  page.text(kLeft - 8, kTop + height, std::to_string(rows.size()), SvgPage::Anchor::kEnd);
  page.text(kLeft - 8, kTop + height / 2, "request", SvgPage::Anchor::kEnd);
  const double gap = row_height > 4 ? 1 : 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    draw_record(page, *rows[i], thresholds, pixels_per_s,
                kTop + row_height * static_cast<double>(i), row_height - gap);
  }
  return page.finish();
}

}  // namespace foretoken::bench
