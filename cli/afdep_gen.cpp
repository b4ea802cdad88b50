// afdep-gen: from a deployment spec to kernels, and everything one wants to know on the way.
#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "cli/gen_commands.h"
#include "generator/spec/nearest.h"

namespace afdep::cli {
namespace {

constexpr const char* kFooter = R"(
A spec is a YAML file (docs/spec.md); "-" reads it from standard input.
Exit codes: 0 ok, 1 spec or verification refused, 2 usage, 3 toolchain or environment, 70 internal.)";

void add_json(CLI::App& app, bool& json) {
  app.add_flag("--json", json, "Print the result, or the errors, as JSON");
}

// Whole numbers from 1; the message of one that is not says so.
CLI::Range from_one() { return {std::int64_t{1}, std::numeric_limits<std::int64_t>::max()}; }

// Says so if the first word was meant to be a command; false if it may be a spec.
bool report_unknown_command(const CLI::App& app, const std::string& word) {
  std::error_code ignored;
  if (word.empty() || word == "-" || std::filesystem::exists(word, ignored)) return false;
  std::vector<std::string_view> names;
  std::string list;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    list += fmt::format("{}{}", names.empty() ? "" : ", ", command->get_name());
    names.emplace_back(command->get_name());
  }
  const std::optional<std::string_view> meant = spec::nearest(word, names);
  print_error(
      fmt::format("{} is neither a command nor a file{}\n  note: commands are {}; to "
                  "generate a bundle: afdep-gen SPEC -o DIR\n",
                  word, meant ? fmt::format("; did you mean {}?", *meant) : "", list));
  return true;
}

void add_matrix_options(CLI::App& app, MatrixArguments& matrix) {
  app.add_option("FILE", matrix.file, "A matrix file (docs/matrix.md)")->required();
  app.add_option("--jobs", matrix.jobs, "Cells at a time, each in a process (default: 2)")
      ->check(CLI::Range(1, 256))
      ->type_name("N");
  CLI::Option* seeds =
      app.add_option("--seeds", matrix.seeds, "Schedules to verify a cell with, seeds 1 to N")
          ->check(CLI::Range(1, 1'000'000))
          ->type_name("N");
  app.add_option("--timeout", matrix.timeout_s, "Seconds a cell may take (default: 300)")
      ->check(CLI::Range(1, 86'400))
      ->type_name("S");
  app.add_option("--cell", matrix.cell, "Only this cell, counted from 1: repeats a failure")
      ->check(from_one())
      ->type_name("N");
  CLI::Option* emit_only =
      app.add_flag("--emit-only", matrix.emit_only, "Plan and emit; compile and run nothing")
          ->excludes(seeds);
  app.add_flag("--no-compile", matrix.no_compile, "Verify without compiling for the GPU")
      ->excludes(emit_only);
  app.add_option("--resume", matrix.state_folder,
                 "Folder with the results so far (default: one in the cache folder)")
      ->type_name("DIR");
  app.add_flag("--fresh", matrix.fresh, "Run every cell, whatever passed before");
  app.add_option("--junit", matrix.junit, "Also write a JUnit report")->type_name("FILE");
  app.add_option("--html", matrix.html, "Also write a report for people, one file")
      ->type_name("FILE");
  add_json(app, matrix.json);
}

int run(int argc, char** argv) {
  CLI::App app("Generates the kernels of an attention-FFN exchange from a deployment spec.",
               "afdep-gen");
  app.set_version_flag("--version", "afdep-gen " AFDEP_VERSION);
  app.footer(kFooter);
  app.require_subcommand(0, 1);

  GenerateArguments generate;
  app.add_option("SPEC", generate.spec, "Generate a bundle from this spec");
  app.add_option("-o,--output", generate.out, "Folder of the bundle: new, empty or a bundle");
  app.add_option("--arch", generate.arches, "Compile for these architectures, not the spec's")
      ->delimiter(',')
      ->option_text("ARCH[,ARCH...]");
  app.add_flag("--emit-only", generate.emit_only, "Sources only, compile nothing");
  app.add_flag("--trace", generate.trace,
               "Kernels that record when they pass steps (afdep-bench --trace)");
  add_json(app, generate.json);

  CheckArguments check;
  CLI::App* check_app = app.add_subcommand("check", "Check specs without generating anything");
  check_app->add_option("SPEC", check.specs, "Specs to check")->required();
  add_json(*check_app, check.json);

  PrintArguments print;
  CLI::App* print_app = app.add_subcommand("print", "Print a spec in its canonical form");
  print_app->add_option("SPEC", print.spec)->required();
  print_app->add_flag("--resolved", print.resolved, "With every default and preset filled in");

  PlanArguments plan;
  CLI::App* plan_app = app.add_subcommand("plan", "Print the plan of the exchange");
  plan_app->add_option("SPEC", plan.spec)->required();
  plan_app->add_option("--svg", plan.svg, "Also draw the exchange (of --bucket, or the first)")
      ->type_name("FILE");
  plan_app->add_option("--bucket", plan.bucket, "This bucket only")
      ->check(from_one())
      ->type_name("N");
  add_json(*plan_app, plan.json);

  VerifyArguments verify;
  CLI::App* verify_app = app.add_subcommand(
      "verify", "Run every rank's kernels on the CPU emulator and compare with a scalar model");
  verify_app->add_option("SPEC", verify.spec)->required();
  CLI::Option* seeds =
      verify_app
          ->add_option("--seeds", verify.seeds,
                       "Schedules to try, seeds 1 to N (default: 3, fewer for many ranks)")
          ->check(CLI::Range(1, 1'000'000))
          ->type_name("N");
  verify_app->add_option("--seed", verify.seed, "Only this schedule: repeats a failure")
      ->check(from_one())
      ->excludes(seeds)
      ->type_name("S");
  verify_app->add_option("--bucket", verify.bucket, "This bucket of the spec only")
      ->check(from_one())
      ->type_name("N");
  verify_app->add_flag("--true-size", verify.true_size,
                       "The spec's own hidden size, experts and buckets, nothing shrunk");
  CLI::Option* const explore =
      verify_app
          ->add_option("--explore", verify.explore,
                       "How schedules are chosen: random, pct (priorities), late (one rank held "
                       "back), all (seeds take turns), or exhaustive (every schedule of a few "
                       "exchanges of one token)")
          ->check(CLI::IsMember({"random", "pct", "late", "exhaustive", "all"}))
          ->type_name("HOW");
  verify_app->add_option("--replay", verify.replay, "Only the run that a failure's token names")
      ->excludes(seeds)
      ->excludes(explore)
      ->type_name("TOKEN");
  verify_app->add_flag("--faults,!--no-faults", verify.faults,
                       "Let ranks stay away, die, come late or send damaged flags (default)");
  verify_app->add_flag("--shrink,!--no-shrink", verify.shrink,
                       "Look for a smaller case that fails too (default)");
  verify_app->add_flag("--ledger", verify.ledger,
                       "Print what exchanges sent, link by link: equal to the plan's prediction");
  add_json(*verify_app, verify.json);

  DiffArguments diff;
  CLI::App* diff_app =
      app.add_subcommand("diff", "Show how the emitted sources of two specs differ");
  diff_app->add_option("OLD", diff.old_spec)->required();
  diff_app->add_option("NEW", diff.new_spec)->required();

  MatrixArguments matrix;
  CLI::App* matrix_app = app.add_subcommand(
      "matrix", "Expand a matrix file; generate, compile and verify each of its specs");
  add_matrix_options(*matrix_app, matrix);

  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) {
      if (generate.spec.empty()) throw CLI::RequiredError("SPEC or a command");
      if (generate.out.empty()) throw CLI::RequiredError("-o DIR");
    } else if (!generate.spec.empty() || !generate.out.empty() || !generate.arches.empty() ||
               generate.emit_only || generate.trace || generate.json) {
      throw CLI::ExtrasError({"what comes before the command"});
    }
  } catch (const CLI::ParseError& error) {
    // Help and version are "errors" with exit code 0.
    if (error.get_exit_code() != 0 && app.get_subcommands().empty() && generate.out.empty() &&
        report_unknown_command(app, generate.spec)) {
      return kExitUsage;
    }
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }

  if (*check_app) return run_check(check);
  if (*print_app) return run_print(print);
  if (*plan_app) return run_plan(plan);
  if (*verify_app) return run_verify(verify);
  if (*diff_app) return run_diff(diff);
  if (*matrix_app) return run_matrix(matrix);
  return run_generate(generate);
}

}  // namespace
}  // namespace afdep::cli

int main(int argc, char** argv) {
  return afdep::cli::run_guarded("afdep-gen", [&] { return afdep::cli::run(argc, argv); });
}
