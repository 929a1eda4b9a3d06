#include "qpn8/error.hpp"

namespace qpn8 {

int Error::exit_status(Kind kind) {
  switch (kind) {
    case check_failed:
      return 1;
    case missing_capability:
      return 3;
    default:
      return 2;
  }
}

}  // namespace qpn8
