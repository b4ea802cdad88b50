// The report for people: the page of report/ with this run's data and pictures in it.
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "generator/generate.h"
#include "generator/matrix/page.h"
#include "generator/matrix/reports.h"
#include "generator/plan/svg.h"
#include "generator/spec/reader.h"

namespace afdep::matrix {
namespace {

using nlohmann::ordered_json;

void replace_one(std::string& text, std::string_view mark, std::string_view with) {
  const std::size_t at = text.find(mark);
  AFDEP_CHECK(at != std::string::npos, "the page has no " + std::string(mark));
  text.replace(at, mark.size(), with);
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      result += c;
    }
  }
  return result;
}

// The exchange of the first bucket; empty if it cannot be drawn. A cell that crashed is not tried:
// this process must outlive it.
std::string picture_of(const RunCell& run) {
  const Outcome outcome = run.result.outcome;
  if (run.spec_text.empty() || outcome == Outcome::kCrashed || outcome == Outcome::kTimeout) {
    return {};
  }
  try {
    const Result<spec::Spec> spec = spec::parse(run.spec_text, run.label);
    if (!spec) return {};
    const Result<plan::ExchangePlan> plan = plan_exchange(*spec);
    if (!plan) return {};
    std::string svg = plan::draw(*plan, plan->buckets.front().bucket);
    // Inside a page the element needs no namespace, and the page names no address at all.
    constexpr std::string_view kNamespace = " xmlns=\"http://www.w3.org/2000/svg\"";
    if (const std::size_t at = svg.find(kNamespace); at != std::string::npos) {
      svg.erase(at, kNamespace.size());
    }
    return svg;
  } catch (const std::exception&) {
    return {};  // the cell's own result says what is wrong with its plan
  }
}

}  // namespace

std::string to_html(const Report& report) {
  ordered_json data = ordered_json::parse(to_json(report));
  ordered_json pictures = ordered_json::array();
  std::map<std::string, std::size_t> known;  // cells that differ in little look the same
  for (std::size_t i = 0; i < report.cells.size(); ++i) {
    const std::string svg = picture_of(report.cells[i]);
    if (svg.empty()) continue;
    const auto [entry, fresh] = known.emplace(svg, pictures.size());
    if (fresh) pictures.push_back(svg);
    data["cells"][i]["picture"] = entry->second;
  }
  data["pictures"] = std::move(pictures);

  std::string json = data.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  // "</script>" or "<!--" inside a string would end the element.
  for (std::size_t at = 0; (at = json.find('<', at)) != std::string::npos; at += 6) {
    json.replace(at, 1, "\\u003c");
  }
  std::string page(page_html());
  replace_one(page, "@TITLE@", escaped(report.matrix->file));
  replace_one(page, "@STYLE@", page_css());
  replace_one(page, "@SCRIPT@", page_js());
  replace_one(page, "@DATA@", json);
  return page;
}

}  // namespace afdep::matrix
