#include "serve/page_routes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "serve/page_files.h"

namespace foretoken {
namespace {

std::string text_of(std::string_view path) {
  for (const PageFile& file : page_files()) {
    if (file.path == path) return std::string(file.body);
  }
  return {};
}

TEST(PageRoutes, ServeEveryFileWithoutAKey) {
  const std::vector<http::Route> routes = page_routes();
  ASSERT_EQ(routes.size(), page_files().size());
  for (const http::Route& route : routes) {
    EXPECT_EQ(route.method, "GET");
    EXPECT_FALSE(route.needs_key);
  }
}

// What the page names is served, and nothing that it would fetch lies elsewhere.
TEST(PageRoutes, EverythingNamedIsServed) {
  const std::string page = text_of("/");
  ASSERT_NE(page, "");
  const std::regex link(R"((?:href|src)=\"([^\"]+)\")");
  int num_links = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), link), end; at != end; ++at, ++num_links) {
    EXPECT_NE(text_of("/" + (*at)[1].str()), "") << (*at)[1].str();
  }
  EXPECT_GE(num_links, 3);
  const std::regex import(R"re(from "\./([a-z]+\.js)")re");
  const std::string app = text_of("/page/app.js");
  for (std::sregex_iterator at(app.begin(), app.end(), import), end; at != end; ++at) {
    EXPECT_NE(text_of("/page/" + (*at)[1].str()), "") << (*at)[1].str();
  }
}

// The content security policy would block them.
TEST(PageRoutes, NothingIsInline) {
  const std::string page = text_of("/");
  EXPECT_EQ(page.find("<style"), std::string::npos);
  EXPECT_EQ(page.find(" style="), std::string::npos);
  EXPECT_EQ(page.find("onclick"), std::string::npos);
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  for (const PageFile& file : page_files()) {
    EXPECT_EQ(file.body.find("innerHTML"), std::string_view::npos) << file.path;
  }
}

}  // namespace
}  // namespace foretoken
