#pragma once
#include <string>
#include <utility>
#include <vector>

namespace foretoken::bench {

// Of the lines behind a plot.
inline constexpr const char* kGridColour = "#e6e6e6";

// The text as it stands in SVG and HTML; control characters become blanks.
std::string markup_text(const std::string& text);

// An SVG picture that needs nothing else: fonts and colours are in it. Lengths are in pixels from
// the top left corner.
class SvgPage {
 public:
  SvgPage(double width, double height);

  void rect(double x, double y, double width, double height, const std::string& colour);
  void line(double x1, double y1, double x2, double y2, const std::string& colour,
            double thickness = 1);
  void polyline(const std::vector<std::pair<double, double>>& points, const std::string& colour);
  enum class Anchor { kStart, kMiddle, kEnd };
  void text(double x, double y, const std::string& words, Anchor anchor = Anchor::kStart,
            double size = 12, const std::string& colour = "#333333");

  // The whole document.
  std::string finish() const;

 private:
  double width_;
  double height_;
  std::string body_;
};

// Round numbers from 0 to at least `largest` in about `count` equal steps: the marks of an axis.
std::vector<double> axis_marks(double largest, int count);

// "0.5", "20", "1200": as many digits as a mark of such an axis needs.
std::string mark_text(double value);

}  // namespace foretoken::bench
