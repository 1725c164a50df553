#include "bench/svg_page.h"

#include <gtest/gtest.h>

#include "bench/xml_check.h"

namespace foretoken::bench {
namespace {

TEST(SvgPage, TheXmlCheckSeesFaults) {
  EXPECT_EQ(xml_problem("<?xml version=\"1.0\"?>\n<a x=\"1\"><b/>&lt;</a>\n"), "");
  for (const char* text : {"", "a", "<a>", "<a></b>", "<a/><b/>", "<a x=\"<\"/>", "<a>&</a>", "<a",
                           "<a x=\"1/>", "</a>", "<a>&nbsp;</a>", "<a \"x\"/>"}) {
    EXPECT_NE(xml_problem(text), "") << text;
  }
}

TEST(SvgPage, IsWellFormedWhateverTheWords) {
  SvgPage page(100, 50);
  page.rect(1, 2, 3, 4, "#ff0000");
  page.line(0, 0, 10, 10, "#000000");
  page.polyline({{1, 2}, {3, 4.5}}, "#00ff00");
  page.text(5, 5, "a <b> & \"c\" \n", SvgPage::Anchor::kEnd);
  const std::string svg = page.finish();
  EXPECT_EQ(xml_problem(svg), "") << svg;
  EXPECT_NE(svg.find("a &lt;b&gt; &amp; &quot;c&quot;  </text>"), std::string::npos);
  EXPECT_NE(svg.find("viewBox=\"0 0 100 50\""), std::string::npos);
  EXPECT_EQ(svg.find("http", svg.find("svg\" ")), std::string::npos) << "no outside resources";
}

TEST(SvgPage, AxisMarksAreRoundAndCoverTheLargest) {
  EXPECT_EQ(axis_marks(10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(axis_marks(7.3, 4), (std::vector<double>{0, 2, 4, 6, 8}));
  EXPECT_EQ(axis_marks(0, 5), (std::vector<double>{0, 1}));
  for (const double largest : {1e-6, 0.013, 0.5, 1.0, 99.0, 12345.0}) {
    const std::vector<double> marks = axis_marks(largest, 5);
    EXPECT_GE(marks.back(), largest);
    EXPECT_LE(marks.back(), 3 * largest);
    EXPECT_LE(marks.size(), 12u);
  }
  EXPECT_EQ(mark_text(0.25), "0.25");
  EXPECT_EQ(mark_text(1200), "1200");
}

}  // namespace
}  // namespace foretoken::bench
