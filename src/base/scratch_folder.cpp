#include "base/scratch_folder.hpp"

#include <cstdlib>
#include <string>
#include <system_error>

#include "qpn8/error.hpp"

namespace qpn8 {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() {
  std::error_code error;
  std::string name = (fs::temp_directory_path(error) / "qpn8-XXXXXX").string();
  if (error || mkdtemp(name.data()) == nullptr) {
    throw Error(Error::bad_file, name + ": cannot be made; TMPDIR must name a folder that can be written to");
  }
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace qpn8
