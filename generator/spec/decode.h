// Node tree to Spec: types, forms, names and ranges, key by key. Rules between keys are validate's.
#pragma once

#include <string>

#include "generator/spec/node.h"
#include "generator/spec/origin.h"
#include "generator/spec/sink.h"
#include "generator/spec/spec.h"

namespace afdep::spec {

// Fills `spec` (default_spec() before the call) from the root of a file. What is refused is
// reported, marked bad in `origin`, and left at its default with given == true.
void decode(const Node& root, const std::string& file, Spec& spec, Origin& origin, Sink& sink);

// E001 for `path`, which is no key, naming the nearest one. Returns that key or section; empty if
// none is near.
std::string report_unknown_key(std::string_view path, const Place& place, Sink& sink);

}  // namespace afdep::spec
