// What no implementation of one measured exchange could beat with every rank on one GPU.
#pragma once

#include "generator/plan/floor.h"
#include "generator/verify/exchange_case.h"
#include "runtime/bundle/manifest.h"

namespace afdep::cli {

// From the exchange's own routes, not an expectation. Rows count as payload: what a protocol adds
// to them is its cost.
plan::Floor loopback_floor(const bundle::Manifest& manifest, const verify::ExchangeCase& exchange,
                           const plan::MachineRates& rates, bool programmatic);

}  // namespace afdep::cli
