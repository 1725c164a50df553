#include "bench/svg_page.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>

namespace foretoken::bench {
namespace {

const char* anchor_name(SvgPage::Anchor anchor) {
  return anchor == SvgPage::Anchor::kStart    ? "start"
         : anchor == SvgPage::Anchor::kMiddle ? "middle"
                                              : "end";
}

}  // namespace

std::string markup_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '"') {
      result += "&quot;";
    } else {
      result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return result;
}

SvgPage::SvgPage(double width, double height) : width_(width), height_(height) {
  rect(0, 0, width, height, "#ffffff");
}

void SvgPage::rect(double x, double y, double width, double height, const std::string& colour) {
  body_ += fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n", x, y,
      width, height, colour);
}

void SvgPage::line(double x1, double y1, double x2, double y2, const std::string& colour,
                   double thickness) {
  body_ += fmt::format(
      "<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" stroke=\"{}\" "
      "stroke-width=\"{:.2f}\"/>\n",
      x1, y1, x2, y2, colour, thickness);
}

void SvgPage::polyline(const std::vector<std::pair<double, double>>& points,
                       const std::string& colour) {
  body_ += "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" + colour + "\" points=\"";
  for (const auto& [x, y] : points) body_ += fmt::format("{:.2f},{:.2f} ", x, y);
  body_ += "\"/>\n";
}

void SvgPage::text(double x, double y, const std::string& words, Anchor anchor, double size,
                   const std::string& colour) {
  body_ += fmt::format(
      "<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\" font-size=\"{:g}\" fill=\"{}\">{}"
      "</text>\n",
      x, y, anchor_name(anchor), size, colour, markup_text(words));
}

std::string SvgPage::finish() const {
  return fmt::format(
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg "
             "xmlns=\"http://www.w3.org/2000/svg\" "
             "width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 {0:g} {1:g}\" "
             "font-family=\"system-ui, sans-serif\">\n",
             width_, height_) +
         body_ + "</svg>\n";
}

std::vector<double> axis_marks(double largest, int count) {
  if (!(largest > 0)) return {0, 1};
  const double rough = largest / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double lead = rough / power;
  const double step = power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
  std::vector<double> marks = {0};
  while (marks.back() < largest) marks.push_back(step * static_cast<double>(marks.size()));
  return marks;
}

std::string mark_text(double value) { return fmt::format("{:.6g}", value); }

}  // namespace foretoken::bench
