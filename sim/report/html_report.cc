#include "weir/sim/html_report.h"

#include <algorithm>

#include "figures.h"
#include "overview.h"
#include "study.h"
#include "style.h"
#include "text.h"

namespace weir::sim_report {

std::string HtmlReport(const Page& page) {
  const Looks looks(page);
  const bool several = page.studies.size() > 1;
  const std::string title = Escaped(page.title);
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<title>" +
      title + "</title>\n<style>\n" + StyleSheet(looks.count()) +
      "</style>\n</head>\n<body>\n<header>\n<h1>" + title + "</h1>\n" +
      Lead(page);
  if (!page.command.empty()) {
    html += "<pre><code>" + Escaped(page.command) + "</code></pre>\n";
  }
  html += "</header>\n<main>\n";
  if (several) html += Overview(page, looks) + "<h2>Scenarios</h2>\n";
  for (size_t i = 0; i < page.studies.size(); ++i) {
    html += StudySection(page.studies[i], looks, StudyId(i), !several);
  }
  return html + "</main>\n<footer>\n<h2>What the figures mean</h2>\n" +
         Meanings(page) + "</footer>\n" + std::string(Script()) +
         "</body>\n</html>\n";
}

}  // namespace weir::sim_report
