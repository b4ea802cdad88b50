#include "generator/matrix/outcome.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "runtime/support/check.h"

namespace afdep::matrix {
namespace {

using nlohmann::json;

json facts_to_json(const Facts& facts) {
  json lines = json::array();
  for (const auto& [name, value] : facts) lines.push_back({name, value});
  return lines;
}

Facts facts_from_json(const json& lines) {
  Facts facts;
  for (const json& line : lines) {
    facts.emplace_back(line.at(0).get<std::string>(), line.at(1).get<std::string>());
  }
  return facts;
}

json diagnostics_to_json(const Diagnostics& diagnostics) {
  json all = json::array();
  for (const Diagnostic& each : diagnostics) {
    all.push_back({{"code", static_cast<int>(each.code)},
                   {"file", each.place.file},
                   {"line", each.place.line},
                   {"column", each.place.column},
                   {"message", each.message},
                   {"note", each.note}});
  }
  return all;
}

Diagnostics diagnostics_from_json(const json& all) {
  Diagnostics diagnostics;
  for (const json& each : all) {
    diagnostics.push_back({static_cast<ErrorCode>(each.at("code").get<int>()),
                           {each.at("file").get<std::string>(), each.at("line").get<int>(),
                            each.at("column").get<int>()},
                           each.at("message").get<std::string>(),
                           each.at("note").get<std::string>()});
  }
  return diagnostics;
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "passed";
    case Outcome::kExpected:
      return "expected";
    case Outcome::kRefused:
      return "refused";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kError:
      return "error";
    case Outcome::kCrashed:
      return "crashed";
    case Outcome::kTimeout:
      return "timeout";
    case Outcome::kNotRun:
      return "not run";
  }
  AFDEP_CHECK(false, "an outcome without a name");
  return {};
}

std::optional<Outcome> outcome_from(std::string_view text) {
  for (const Outcome outcome : kOutcomes) {
    if (to_string(outcome) == text) return outcome;
  }
  return std::nullopt;
}

bool is_good(Outcome outcome) {
  return outcome == Outcome::kPassed || outcome == Outcome::kExpected;
}

std::string message_of(const CellResult& result) {
  if (result.diagnostics.empty()) return {};
  const Diagnostic& first = result.diagnostics.front();
  std::string text = fmt::format("{}: {}", to_string(first.code), first.message);
  if (result.diagnostics.size() > 1) {
    text += fmt::format(" (and {} more)", result.diagnostics.size() - 1);
  }
  return text;
}

std::string to_json(const CellResult& result) {
  return json{{"outcome", to_string(result.outcome)},
              {"seconds", result.seconds},
              {"cpu_seconds", result.cpu_seconds},
              {"diagnostics", diagnostics_to_json(result.diagnostics)},
              {"trace", result.trace},
              {"verified", facts_to_json(result.verified)},
              {"ledger", facts_to_json(result.ledger)},
              {"figures", facts_to_json(result.figures)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<CellResult> result_from_json(std::string_view text) {
  try {
    const json parsed = json::parse(text);
    const std::optional<Outcome> outcome = outcome_from(parsed.at("outcome").get<std::string>());
    if (!outcome) return std::nullopt;
    CellResult result;
    result.outcome = *outcome;
    result.seconds = parsed.at("seconds").get<double>();
    result.cpu_seconds = parsed.at("cpu_seconds").get<double>();
    result.diagnostics = diagnostics_from_json(parsed.at("diagnostics"));
    result.trace = parsed.at("trace").get<std::string>();
    result.verified = facts_from_json(parsed.at("verified"));
    result.ledger = facts_from_json(parsed.at("ledger"));
    result.figures = facts_from_json(parsed.at("figures"));
    return result;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace afdep::matrix
