#include "text/jinja/budget.hpp"

#include <fmt/format.h>

namespace qpn8::jinja {

void Budget::fail_work() const {
  throw TemplateError(fmt::format("the template does not end within {} steps", limits_.work));
}

void Budget::fail_memory() const {
  throw TemplateError(fmt::format("the template's values take more than {} bytes", limits_.memory));
}

void Budget::fail_text() const {
  throw TemplateError(fmt::format("the template makes a text of more than {} bytes", limits_.text));
}

void Budget::fail_nesting() const {
  throw TemplateError(
      fmt::format("maximum recursion depth exceeded: more than {} nested evaluations", limits_.nesting));
}

}  // namespace qpn8::jinja
