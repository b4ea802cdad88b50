// mutate [--jobs N] [--seeds N] [--only NAME]: does verification find each mistake? Prints a table,
// the score and the survivors. Exit code 1 on a survivor that nothing explains.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "generator/matrix/pool.h"
#include "tests/mutation/judge.h"

namespace afdep::mutation {
namespace {

constexpr double kLimitSeconds = 1800;  // of one mutant

struct Row {
  const Mutant* mutant = nullptr;
  Verdict verdict;
  double seconds = 0;
};

Row row_of(const Mutant& mutant, const matrix::JobEnd& end) {
  Row row{&mutant, {}, end.seconds};
  if (end.how == matrix::Ended::kTimeout) {
    // The emulator ends whatever stalls, so this says nothing about the mistake: the machine was
    // busy, or a loop calls no device function.
    row.verdict = {true, false, fmt::format("did not end within {} s", kLimitSeconds), true};
    return row;
  }
  if (end.how != matrix::Ended::kReturned) {
    row.verdict = {true, false, "the verifier crashed: " + end.output, true};
    return row;
  }
  const auto json = nlohmann::json::parse(end.result);
  row.verdict = {json["applies"], json["killed"], json["by"], json["broken"]};
  return row;
}

const char* word(const Row& row) {
  if (row.verdict.broken) return "BROKEN";
  if (!row.verdict.applies) return "NO MATCH";
  const bool equivalent = *row.mutant->equivalent != '\0';
  if (row.verdict.killed) return equivalent ? "NOT EQUIVALENT" : "killed";
  return equivalent ? "equivalent" : "SURVIVED";
}

int run(int argc, char** argv) {
  CLI::App app("Does verification find each mistake?", "mutate");
  int jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  int seeds = 12;
  std::string only;
  app.add_option("--jobs", jobs, "Mutants at a time")->check(CLI::Range(1, 256));
  app.add_option("--seeds", seeds, "Schedules a mutant must survive")->check(CLI::Range(1, 1000));
  app.add_option("--only", only, "Mutants whose name holds this");
  CLI11_PARSE(app, argc, argv);

  std::vector<const Mutant*> chosen;
  for (const Mutant& mutant : mutants()) {
    if (std::string_view(mutant.name).find(only) != std::string_view::npos) {
      chosen.push_back(&mutant);
    }
  }
  if (chosen.empty()) {
    fmt::print(stderr, "mutate: no mutant's name holds \"{}\"\n", only);
    return 2;
  }
  std::vector<Row> rows(chosen.size());
  fmt::print("{:<46} {:<13} {:<14} {:>5}  {}\n", "mutant", "rule", "outcome", "s", "by");
  const bool finished = matrix::run_pool(
      static_cast<int>(chosen.size()), {.jobs = jobs, .limit_seconds = kLimitSeconds},
      [&](int i, const matrix::TellStage&) {
        const Verdict verdict = judge(*chosen[static_cast<std::size_t>(i)], seeds);
        return nlohmann::json{{"applies", verdict.applies},
                              {"killed", verdict.killed},
                              {"by", verdict.by},
                              {"broken", verdict.broken}}
            .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      },
      [&](int i, const matrix::JobEnd& end) {
        Row& row = rows[static_cast<std::size_t>(i)];
        row = row_of(*chosen[static_cast<std::size_t>(i)], end);
        fmt::print("{:<46} {:<13} {:<14} {:>5.1f}  {}\n", row.mutant->name,
                   to_string(row.mutant->rule), word(row), row.seconds, row.verdict.by);
        std::fflush(stdout);
      });
  if (!finished) return 130;

  int killed = 0;
  int counted = 0;
  int wrong = 0;
  for (const Row& row : rows) {
    const std::string_view outcome = word(row);
    if (outcome == "equivalent") continue;
    ++counted;
    killed += outcome == "killed" ? 1 : 0;
    wrong += outcome == "killed" ? 0 : 1;
  }
  fmt::print("\nscore: {} of {} mutants killed\n", killed, counted);
  for (const Row& row : rows) {
    const std::string_view outcome = word(row);
    if (outcome == "killed") continue;
    fmt::print("  {}: {}{}{}\n", row.mutant->name, outcome,
               *row.mutant->equivalent != '\0' ? ": " : "", row.mutant->equivalent);
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace afdep::mutation

int main(int argc, char** argv) { return afdep::mutation::run(argc, argv); }
