#include "evidence/report_assets.hpp"

#include <span>

#include "base/embedded_file.hpp"

namespace qpn8 {

std::span<const EmbeddedFile> embedded_report_files();

std::string_view report_style() { return embedded_report_files().front().text; }

}  // namespace qpn8
