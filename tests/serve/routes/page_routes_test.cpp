#include "serve/routes/page_routes.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <utility>

#include "serve/flow/fake_exchange.h"
#include "serve/routes/page_files.h"
#include "support/folders.h"

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

// The path of what `link` in `file` names: "./x" is beside it.
std::string path_of(std::string_view file, const std::string& link) {
  if (!link.starts_with("./")) return "/" + link;
  return std::string(file.substr(0, file.rfind('/') + 1)) + link.substr(2);
}

bool is_vendored(const PageFile& file) { return file.path.starts_with("/page/vendor/"); }

// What the page and its scripts name is served, and nothing that they would fetch lies elsewhere.
TEST(PageRoutes, EverythingNamedIsServed) {
  const std::regex link(R"re((?:href|src)="([^"]+)"|from "(\./[^"]+)"|import "(\./[^"]+)")re");
  int num_links = 0;
  for (const PageFile& file : page_files()) {
    if (is_vendored(file)) continue;
    const std::string text(file.body);
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
      const std::string name = (*at)[1].str() + (*at)[2].str() + (*at)[3].str();
      if (name.starts_with("${")) continue;
      EXPECT_NE(text_of(path_of(file.path, name)), "") << file.path << ": " << name;
      ++num_links;
    }
  }
  EXPECT_GE(num_links, 20);
}

TEST(PageRoutes, WhatABrowserHasIsNotSentAgain) {
  const PageFile& file = page_files().front();
  const http::Route route = page_routes().front();
  const auto answer = [&](const std::string& known) {
    auto exchange = test::FakeExchange::make("");
    if (!known.empty()) exchange->request_.headers = {{"if-none-match", known}};
    route.handler(exchange);
    EXPECT_TRUE(exchange->wait());
    EXPECT_EQ(exchange->header("ETag"), file.etag);
    return std::make_pair(exchange->status(), exchange->body().size());
  };
  const std::string etag(file.etag);
  EXPECT_EQ(answer(""), std::make_pair(200, file.body.size()));
  EXPECT_EQ(answer("\"other\""), std::make_pair(200, file.body.size()));
  EXPECT_EQ(answer(etag), std::make_pair(304, size_t{0}));
  EXPECT_EQ(answer("\"other\", W/" + etag), std::make_pair(304, size_t{0}));
}

// The libraries are what their README says, and each has its licence beside it.
TEST(PageRoutes, LibrariesAreUnchanged) {
  std::ifstream in(std::string(foretoken::kSourceFolder) + "/src/serve/page/vendor/README.md");
  const std::string readme{std::istreambuf_iterator<char>(in), {}};
  int num_libraries = 0;
  for (const PageFile& file : page_files()) {
    if (!is_vendored(file) || !file.path.ends_with(".js")) continue;
    const std::string name(file.path.substr(file.path.rfind('/') + 1));
    const std::string hash(file.etag.substr(1, file.etag.size() - 2));  // the first half of SHA-256
    const size_t line = readme.find("| " + name + " |");
    ASSERT_NE(line, std::string::npos) << name;
    EXPECT_NE(readme.substr(line, readme.find('\n', line) - line).find("| " + hash),
              std::string::npos)
        << name;
    const std::string licence = "/page/vendor/" + name.substr(0, name.find('.')) + ".LICENSE.txt";
    EXPECT_GT(text_of(licence).size(), 1000u) << licence;
    ++num_libraries;
  }
  EXPECT_EQ(num_libraries, 3);
}

// The content security policy would block them.
TEST(PageRoutes, NothingIsInline) {
  const std::string page = text_of("/");
  EXPECT_EQ(page.find("<style"), std::string::npos);
  EXPECT_EQ(page.find(" style="), std::string::npos);
  EXPECT_EQ(page.find("onclick"), std::string::npos);
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  for (const PageFile& file : page_files()) {
    if (is_vendored(file)) continue;
    EXPECT_EQ(file.body.find("innerHTML"), std::string_view::npos) << file.path;
  }
}

}  // namespace
}  // namespace foretoken
