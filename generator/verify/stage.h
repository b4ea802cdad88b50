// An emulator with all ranks of a bundle on it, their memory named and fenced.
#pragma once

#include <memory>

#include "generator/verify/world.h"
#include "runtime/emulator/emulator_backend.h"

namespace afdep::verify {

struct Stage {
  std::unique_ptr<EmulatorBackend> backend;
  std::unique_ptr<World> world;  // on the backend, so destroyed first
};

// From now on a store of a rank into a peer's window outside the blocks that the plan gives it is a
// failure.
Result<void> fence_windows(EmulatorBackend& backend, const World& world);

Result<Stage> make_stage(const EmulatorOptions& options, const bundle::Bundle& bundle,
                         const WorldOptions& world);

}  // namespace afdep::verify
