// The line-directive engine: a template and its arguments become the text of a kernel.
// Directives, strictness and how to add a template: docs/emission.md.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "generator/emit/coverage.h"
#include "generator/emit/value.h"
#include "runtime/support/result.h"

namespace afdep::emit {

// The text of a template by its path ("kernels/dispatch.cu.in"), or nothing if there is none. The
// text must stay alive during expand(). afdep::templates::find is one.
using TemplateSource = std::function<std::optional<std::string_view>(std::string_view path)>;

// Expands one template. Every mistake of the template and its fragments is reported, each once,
// with the place in the template; mistakes here are afdep's own, so emit() turns a failure into
// InternalError. `coverage` may be null.
Result<std::string> expand(std::string_view template_path, const Arguments& arguments,
                           const TemplateSource& templates, Coverage* coverage);

}  // namespace afdep::emit
